package mount

import (
	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
)

// Errno is wazero's error number; zero is success.
type Errno = experimentalsys.Errno

// Error numbers that wazero's vocabulary lacks. They are distinct from its values and known to the sandbox's own WASI
// functions only.
const (
	EXDEV Errno = 0x4000 + iota
	EDQUOT
	ENOSPC
	EMFILE
	EFBIG
	EBUSY
	EMLINK
	ETXTBSY
	ENXIO
	EOVERFLOW
	ENOMEM
)
