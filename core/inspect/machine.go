package inspect

import "atoll/kernels/auto"

// Machine is what the engine would run on.
type Machine struct {
	CPU     string `json:"cpu"`
	Backend string `json:"backend"`
	Tier    string `json:"tier"`
	Threads int    `json:"threads"`
	Reason  string `json:"reason"` // why this tier
}

// Probe opens the backend that a model would run on, and closes it.
func Probe(o Options) (Machine, error) {
	b, err := auto.Open(auto.Options{Threads: o.Threads, Tier: o.CPU})
	if err != nil {
		return Machine{CPU: cpuName()}, err
	}
	defer b.Close()
	info := b.Info()
	return Machine{CPU: cpuName(), Backend: info.Name, Tier: info.Tier, Threads: info.Threads, Reason: info.Reason}, nil
}
