// Package offshoot asks an engine of Offshoot. What its API has is in client.gen.go, which scripts/clients.sh generates; here is
// what everyone would have to add: who the engine is, its errors as errors, and the end of a job.
package offshoot

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Look is how long Wait pauses between two looks at a job.
const Look = 100 * time.Millisecond

// Failure is what an engine refused, or why a job failed.
type Failure struct {
	// Code is the kind, for programs: "not_found", say.
	Code string
	// Message says what failed and why.
	Message string
	// Hint says how to fix it; empty where nothing is known.
	Hint string
}

func (f *Failure) Error() string {
	if f.Hint == "" {
		return f.Message
	}
	return fmt.Sprintf("%s (hint: %s)", f.Message, f.Hint)
}

// Connect asks the engine at an address as https://HOST:PORT, whose certificate has the fingerprint that `offshoot status`
// shows there, or at one of loopback as http://127.0.0.1:PORT. Calls that the engine refuses return a *Failure.
func Connect(address, fingerprint, token string) (*ClientWithResponses, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{ForceAttemptHTTP2: true}
	switch {
	case parsed.Scheme == "https" && fingerprint != "":
		transport.TLSClientConfig = pinned(fingerprint)
	case parsed.Scheme == "http" && isLoopback(parsed.Hostname()):
	default:
		return nil, errors.New("an engine is asked by https with its fingerprint, or by http on loopback")
	}
	// A redirect would take the token elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	asks := &refusals{http.Client{Transport: transport, CheckRedirect: stay}}
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	return NewClientWithResponses(address, WithHTTPClient(asks), WithRequestEditorFn(authorize))
}

// Wait returns when a job has ended: nil if it has done its work.
func Wait(ctx context.Context, client *ClientWithResponses, job string) error {
	for {
		shown, err := client.ShowJobWithResponse(ctx, job)
		if err != nil {
			return err
		}
		if shown.JSON200 == nil {
			return fmt.Errorf("no job in the answer: %s", shown.Status())
		}
		switch shown.JSON200.State {
		case JobStateDone:
			return nil
		case JobStateFailed, JobStateCancelled:
			if why := shown.JSON200.Error; why != nil {
				return &Failure{why.Code, why.Message, why.Hint}
			}
			return &Failure{Code: "cancelled", Message: "the job was cancelled"}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(Look):
		}
	}
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// pinned takes one certificate and no other, whoever signed it.
func pinned(fingerprint string) *tls.Config {
	verify := func(state tls.ConnectionState) error {
		sum := sha256.Sum256(state.PeerCertificates[0].Raw)
		shown := "sha256:" + hex.EncodeToString(sum[:])
		if subtle.ConstantTimeCompare([]byte(shown), []byte(fingerprint)) == 1 {
			return nil
		}
		return &Failure{"unauthorized", "the certificate is not what the engine is known by: " + shown, ""}
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, VerifyConnection: verify}
}

// refusals makes errors of answers that are no success.
type refusals struct{ client http.Client }

func (r *refusals) Do(request *http.Request) (*http.Response, error) {
	answer, err := r.client.Do(request)
	if err != nil || answer.StatusCode < 300 {
		return answer, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	var body ErrorBody
	if json.Unmarshal(text, &body) != nil || body.Error.Code == "" {
		return nil, fmt.Errorf("not an engine's answer: %s", answer.Status)
	}
	return nil, &Failure{body.Error.Code, body.Error.Message, body.Error.Hint}
}
