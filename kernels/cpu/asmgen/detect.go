package main

// detect adds the two instructions that tell what processor and operating system
// can do.
func detect(f *file) {
	p := f.fn("cpuid", "stores eax, ebx, ecx and edx of a leaf.", "out *uint32, leaf int, sub int")
	p.load("leaf", "AX")
	p.load("sub", "CX")
	p.i("CPUID")
	p.load("out", "DI")
	p.i("MOVL", "AX", mem("DI", 0))
	p.i("MOVL", "BX", mem("DI", 4))
	p.i("MOVL", "CX", mem("DI", 8))
	p.i("MOVL", "DX", mem("DI", 12))
	p.i("RET")

	p = f.fn("xgetbv", "stores the low half of the register that says which vector state the system saves.", "out *uint32")
	p.i("XORL", "CX", "CX")
	p.i("XGETBV")
	p.load("out", "DI")
	p.i("MOVL", "AX", mem("DI", 0))
	p.i("RET")
}
