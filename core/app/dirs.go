package app

import (
	"errors"
	"path/filepath"
)

// Env are the variables of the environment that name directories, as values.
type Env struct {
	Home          string // HOME
	AtollHome     string // ATOLL_HOME
	AtollModels   string // ATOLL_MODELS
	XDGDataHome   string
	XDGCacheHome  string
	XDGConfigHome string
	// LocalAppData is used where HOME and the XDG variables are not set, as on Windows.
	LocalAppData string
}

// Directories are where atoll keeps things.
type Directories struct{ Data, Cache, Config, Models string }

// Dirs returns the directories: ATOLL_HOME holds everything but the settings; else the XDG directories with their defaults, each
// with "atoll" below. A relative XDG variable is ignored, as its specification says.
func Dirs(e Env) (Directories, error) {
	pick := func(xdg, fallback string) string {
		switch {
		case filepath.IsAbs(xdg):
			return filepath.Join(xdg, "atoll")
		case e.Home != "":
			return filepath.Join(e.Home, filepath.FromSlash(fallback), "atoll")
		case e.LocalAppData != "":
			return filepath.Join(e.LocalAppData, "atoll", filepath.Base(fallback))
		}
		return ""
	}
	d := Directories{
		Data:   pick(e.XDGDataHome, ".local/share"),
		Cache:  pick(e.XDGCacheHome, ".cache"),
		Config: pick(e.XDGConfigHome, ".config"),
	}
	if e.AtollHome != "" {
		abs, err := filepath.Abs(e.AtollHome)
		if err != nil {
			return d, err
		}
		d.Data, d.Cache = abs, filepath.Join(abs, "cache")
	}
	if d.Data == "" {
		return d, errors.New("no home directory: set HOME or ATOLL_HOME")
	}
	d.Models = filepath.Join(d.Data, "models")
	if e.AtollModels != "" {
		d.Models = e.AtollModels
	}
	return d, nil
}
