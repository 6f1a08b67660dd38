package sandbox

import (
	"io/fs"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"

	"atoll/sandbox/mount"
)

// Numbers of WASI preview 1 (wasi_snapshot_preview1.witx).

// errno is a WASI error number.
type errno uint16

const (
	ok           errno = 0
	eAcces       errno = 2
	eAgain       errno = 6
	eBadf        errno = 8
	eBusy        errno = 10
	eDquot       errno = 19
	eExist       errno = 20
	eFault       errno = 21
	eFbig        errno = 22
	eIntr        errno = 27
	eInval       errno = 28
	eIO          errno = 29
	eIsdir       errno = 31
	eLoop        errno = 32
	eMfile       errno = 33
	eMlink       errno = 34
	eNametoolong errno = 37
	eNoent       errno = 44
	eNomem       errno = 48
	eNospc       errno = 51
	eNosys       errno = 52
	eNotdir      errno = 54
	eNotempty    errno = 55
	eNotsock     errno = 57
	eNotsup      errno = 58
	eNxio        errno = 60
	eOverflow    errno = 61
	ePerm        errno = 63
	eRange       errno = 68
	eRofs        errno = 69
	eSpipe       errno = 70
	eTxtbsy      errno = 74
	eXdev        errno = 75
	eNotcapable  errno = 76
)

// errnoOf maps what a mount answers.
func errnoOf(e mount.Errno) errno {
	switch e {
	case 0:
		return ok
	case experimentalsys.EACCES:
		return eAcces
	case experimentalsys.EAGAIN:
		return eAgain
	case experimentalsys.EBADF:
		return eBadf
	case experimentalsys.EEXIST:
		return eExist
	case experimentalsys.EFAULT:
		return eFault
	case experimentalsys.EINTR:
		return eIntr
	case experimentalsys.EINVAL:
		return eInval
	case experimentalsys.EISDIR:
		return eIsdir
	case experimentalsys.ELOOP:
		return eLoop
	case experimentalsys.ENAMETOOLONG:
		return eNametoolong
	case experimentalsys.ENOENT:
		return eNoent
	case experimentalsys.ENOSYS:
		return eNosys
	case experimentalsys.ENOTDIR:
		return eNotdir
	case experimentalsys.ENOTEMPTY:
		return eNotempty
	case experimentalsys.ENOTSUP:
		return eNotsup
	case experimentalsys.EPERM:
		return ePerm
	case experimentalsys.ERANGE:
		return eRange
	case experimentalsys.EROFS:
		return eRofs
	case mount.EXDEV:
		return eXdev
	case mount.EDQUOT:
		return eDquot
	case mount.ENOSPC:
		return eNospc
	case mount.EMFILE:
		return eMfile
	case mount.EFBIG:
		return eFbig
	case mount.EBUSY:
		return eBusy
	case mount.EMLINK:
		return eMlink
	case mount.ETXTBSY:
		return eTxtbsy
	case mount.ENXIO:
		return eNxio
	case mount.EOVERFLOW:
		return eOverflow
	case mount.ENOMEM:
		return eNomem
	}
	return eIO
}

const (
	filetypeUnknown  = 0
	filetypeBlock    = 1
	filetypeChar     = 2
	filetypeDir      = 3
	filetypeRegular  = 4
	filetypeStream   = 6
	filetypeSymlink  = 7
	dirMask          = 0xf // of lookup flags and open flags
	lookupFollow     = 1
	oCreat           = 1
	oDirectory       = 2
	oExcl            = 4
	oTrunc           = 8
	fdAppend         = 1
	fdDsync          = 2
	fdNonblock       = 4
	fdRsync          = 8
	fdSync           = 16
	fdflagsMask      = 31
	setAtim          = 1
	setAtimNow       = 2
	setMtim          = 4
	setMtimNow       = 8
	subClock         = 0
	subRead          = 1
	subWrite         = 2
	subAbstime       = 1
	clockRealtime    = 0
	clockMonotonic   = 1
	direntSize       = 24
	eventSize        = 32
	subscriptionSize = 48
	filestatSize     = 64
	fdstatSize       = 24
)

const (
	rightFdDatasync         = 1 << 0
	rightFdRead             = 1 << 1
	rightFdSeek             = 1 << 2
	rightFdFdstatSetFlags   = 1 << 3
	rightFdSync             = 1 << 4
	rightFdTell             = 1 << 5
	rightFdWrite            = 1 << 6
	rightFdAdvise           = 1 << 7
	rightFdAllocate         = 1 << 8
	rightPathCreateDir      = 1 << 9
	rightPathCreateFile     = 1 << 10
	rightPathLinkSource     = 1 << 11
	rightPathLinkTarget     = 1 << 12
	rightPathOpen           = 1 << 13
	rightFdReaddir          = 1 << 14
	rightPathReadlink       = 1 << 15
	rightPathRenameSource   = 1 << 16
	rightPathRenameTarget   = 1 << 17
	rightPathFilestatGet    = 1 << 18
	rightPathFilestatSize   = 1 << 19
	rightPathFilestatTimes  = 1 << 20
	rightFdFilestatGet      = 1 << 21
	rightFdFilestatSetSize  = 1 << 22
	rightFdFilestatSetTimes = 1 << 23
	rightPathSymlink        = 1 << 24
	rightPathRemoveDir      = 1 << 25
	rightPathUnlink         = 1 << 26
	rightPoll               = 1 << 27

	// writeRights ask for a file that can be written. The right to set its size does not: the Go library leaves it in
	// when it opens for reading.
	writeRights = rightFdWrite | rightFdAllocate
	fileRights  = rightFdDatasync | rightFdRead | rightFdSeek | rightFdFdstatSetFlags | rightFdSync | rightFdTell |
		rightFdWrite | rightFdAdvise | rightFdAllocate | rightFdFilestatGet | rightFdFilestatSetSize |
		rightFdFilestatSetTimes | rightPoll
	dirRights = rightFdDatasync | rightFdFdstatSetFlags | rightFdSync | rightPathCreateDir | rightPathCreateFile |
		rightPathLinkSource | rightPathLinkTarget | rightPathOpen | rightFdReaddir | rightPathReadlink |
		rightPathRenameSource | rightPathRenameTarget | rightPathFilestatGet | rightPathFilestatSize |
		rightPathFilestatTimes | rightFdFilestatGet | rightFdFilestatSetTimes | rightPathSymlink | rightPathRemoveDir |
		rightPathUnlink | rightPoll
	stdioRights = rightFdRead | rightFdWrite | rightFdFdstatSetFlags | rightFdFilestatGet | rightPoll
)

func filetypeOf(m fs.FileMode) byte {
	switch m.Type() {
	case 0:
		return filetypeRegular
	case fs.ModeDir:
		return filetypeDir
	case fs.ModeSymlink:
		return filetypeSymlink
	case fs.ModeSocket:
		return filetypeStream
	case fs.ModeDevice:
		return filetypeBlock
	case fs.ModeDevice | fs.ModeCharDevice:
		return filetypeChar
	}
	return filetypeUnknown
}

// putFilestat lays out a filestat.
func putFilestat(b []byte, st *wasys.Stat_t) {
	clear(b[:filestatSize])
	le.PutUint64(b[0:], st.Dev)
	le.PutUint64(b[8:], st.Ino)
	b[16] = filetypeOf(st.Mode)
	le.PutUint64(b[24:], st.Nlink)
	le.PutUint64(b[32:], uint64(st.Size))
	le.PutUint64(b[40:], uint64(st.Atim))
	le.PutUint64(b[48:], uint64(st.Mtim))
	le.PutUint64(b[56:], uint64(st.Ctim))
}
