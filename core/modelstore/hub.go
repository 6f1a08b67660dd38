package modelstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	dialTimeout   = 5 * time.Second
	headerTimeout = 20 * time.Second
	// hubAttempts in a row without a new byte end the fetch; an attempt that
	// brought something starts the count again.
	hubAttempts = 4
)

// hubClient gives up soon on a host that cannot be reached. The body has no
// deadline of its own: the stall timer watches it.
func hubClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	t.TLSHandshakeTimeout = 10 * time.Second
	t.ResponseHeaderTimeout = headerTimeout
	return &http.Client{Transport: t}
}

// fetchHub fills the part file from the hub, from where it stands.
func (s *Store) fetchHub(ctx context.Context, m Model, path string, o *PullOptions) (string, error) {
	endpoint := strings.TrimRight(o.HubEndpoint, "/")
	if endpoint == "" {
		endpoint = DefaultHub
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("HF_ENDPOINT %q is not an http or https address", endpoint)
	}
	address := endpoint + "/" + m.Hub.Repo + "/resolve/main/" + url.PathEscape(m.Hub.Path)
	client := o.Client
	if client == nil {
		client = hubClient()
		defer client.CloseIdleConnections()
	}
	f, have, err := openPart(m, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := checkSpace(s.dir, m.Size-have); err != nil {
		return "", err
	}
	tx := &transfer{m: m, o: o, client: client, address: address, file: f, have: have}
	// Nobody answering at all is a matter for the next source, at once; only a
	// hub that has answered is worth waiting for.
	for idle := 0; tx.have < m.Size; {
		before := tx.have
		err := tx.run(ctx)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		var hard *hardError
		var status *statusError
		var wrong *wrongFileError
		if errors.As(err, &hard) || !tx.answered || errors.As(err, &wrong) || (errors.As(err, &status) && !status.temporary()) {
			return "", err
		}
		if idle++; tx.have > before {
			idle = 0
		}
		if idle >= hubAttempts {
			return "", err
		}
		if err := wait(ctx, o.RetryDelay); err != nil {
			return "", err
		}
	}
	return "hub: " + m.Hub.Repo, nil
}

// statusError is an answer other than success.
type statusError struct{ code int }

func (e *statusError) Error() string {
	text := fmt.Sprintf("the hub answered %d %s", e.code, http.StatusText(e.code))
	if e.code == http.StatusUnauthorized || e.code == http.StatusForbidden {
		text += " (HF_TOKEN)"
	}
	return text
}

func (e *statusError) temporary() bool {
	return e.code == http.StatusTooManyRequests || e.code == http.StatusRequestTimeout || e.code >= 500
}

// transfer is one file on its way from the hub.
type transfer struct {
	m        Model
	o        *PullOptions
	client   *http.Client
	address  string
	file     *os.File
	have     int64 // bytes of the file that are there
	answered bool  // some response arrived
}

// run makes one request for what is missing and stores what it brings.
func (t *transfer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "atoll")
	// A compressed body would not start at the byte that was asked for.
	req.Header.Set("Accept-Encoding", "identity")
	if t.o.HubToken != "" {
		req.Header.Set("Authorization", "Bearer "+t.o.HubToken)
	}
	if t.have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.have))
	}
	stalled := time.AfterFunc(t.o.StallTimeout, cancel)
	defer stalled.Stop()
	resp, err := t.client.Do(req)
	if err != nil {
		var uerr *url.Error
		if errors.As(err, &uerr) {
			err = uerr.Err // the address, perhaps signed, is not shown
		}
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("no answer for %s", t.o.StallTimeout)
		}
		return err
	}
	defer resp.Body.Close()
	t.answered = true
	switch {
	case resp.StatusCode == http.StatusPartialContent && t.have > 0:
		start, total, ok := parseContentRange(resp.Header.Get("Content-Range"))
		if !ok || start != t.have || (total >= 0 && total != t.m.Size) {
			// Not the range that was asked for: take the file from the start.
			t.have = 0
			if err := rewind(t.file, 0); err != nil {
				return err
			}
			return fmt.Errorf("the hub sent range %q", resp.Header.Get("Content-Range"))
		}
	case resp.StatusCode == http.StatusOK:
		if resp.ContentLength >= 0 && resp.ContentLength != t.m.Size {
			return &wrongFileError{resp.ContentLength, t.m.Size}
		}
		t.have = 0 // it does not do ranges, or none was asked for
		if err := rewind(t.file, 0); err != nil {
			return err
		}
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		t.have = 0
		if err := rewind(t.file, 0); err != nil {
			return err
		}
		return &statusError{http.StatusServiceUnavailable} // once more, from the start
	default:
		return &statusError{resp.StatusCode}
	}
	return t.copy(resp.Body, stalled)
}

// wrongFileError is an answer that cannot be the file.
type wrongFileError struct{ got, want int64 }

func (e *wrongFileError) Error() string {
	return fmt.Sprintf("the hub's file has %d bytes instead of %d", e.got, e.want)
}

func (t *transfer) copy(body io.Reader, stalled *time.Timer) error {
	buf := make([]byte, 256<<10)
	for t.have < t.m.Size {
		n, err := body.Read(buf[:min(int64(len(buf)), t.m.Size-t.have)])
		if n > 0 {
			stalled.Reset(t.o.StallTimeout)
			if _, err := t.file.Write(buf[:n]); err != nil {
				return &hardError{fmt.Errorf("write: %w", err)}
			}
			t.have += int64(n)
			t.o.Progress(Progress{Name: t.m.Name, Phase: "fetch", Source: SourceHub, Done: t.have, Total: t.m.Size})
		}
		if err != nil && t.have < t.m.Size {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("no byte for %s", t.o.StallTimeout)
			}
			return err
		}
	}
	return nil
}

// parseContentRange reads "bytes START-END/TOTAL"; total is -1 for "*".
func parseContentRange(s string) (start, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	if !ok {
		return 0, 0, false
	}
	span, size, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, false
	}
	from, _, ok := strings.Cut(span, "-")
	if !ok {
		return 0, 0, false
	}
	start, err := strconv.ParseInt(from, 10, 64)
	if err != nil || start < 0 {
		return 0, 0, false
	}
	if size == "*" {
		return start, -1, true
	}
	total, err = strconv.ParseInt(size, 10, 64)
	return start, total, err == nil && total >= 0
}
