// Package transcript prints what a client saw of a server, in words that are the same for every server that answers
// alike: no uid, time, revision, generated name or address.
package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Patience is how long a program waits for what must come about.
const Patience = 30 * time.Second

var step = "start"

// Step begins a part of the transcript.
func Step(name string) {
	step = name
	fmt.Printf("== %s\n", name)
}

// Say prints one line.
func Say(format string, values ...any) {
	fmt.Printf("%s\n", strings.TrimRight(fmt.Sprintf(format, values...), "\n"))
}

// Must ends the program when what has to work does not.
func Must(err error) {
	if err != nil {
		Fail("%v", err)
	}
}

// Take is Must for a call that gives a value.
func Take[T any](value T, err error) T {
	Must(err)
	return value
}

// Fail ends the program.
func Fail(format string, values ...any) {
	fmt.Printf("FAILED in %q: %s\n", step, fmt.Sprintf(format, values...))
	os.Exit(1)
}

// Refused prints an error of the API as its Status tells it, and ends the program when there was none.
func Refused(what string, err error) {
	if err == nil {
		Fail("%s: no error", what)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		Fail("%s: not a Status: %v", what, err)
	}
	body := status.Status()
	Say("%s: %d %s: %s", what, body.Code, body.Reason, firstLine(body.Message))
	if body.Details != nil {
		for _, cause := range body.Details.Causes {
			Say("  %s %s: %s", cause.Type, cause.Field, firstLine(cause.Message))
		}
	}
}

// firstLine leaves out what follows some messages: the difference of two Go structs.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// volatile are the fields whose values no two servers share.
var volatile = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "managedFields": true, "selfLink": true,
	"lastTransitionTime": true, "lastUpdateTime": true, "startTime": true, "completionTime": true,
	"pod-template-hash": true, "controller-uid": true, "batch.kubernetes.io/controller-uid": true,
	"clusterIP": true, "clusterIPs": true, "nodePort": true, "lastProbeTime": true, "deletionTimestamp": true,
	"firstTimestamp": true, "lastTimestamp": true, "eventTime": true,
}

// Show prints an object as JSON with its keys sorted, without what is volatile.
func Show(what string, object any) {
	var tree any
	Must(json.Unmarshal(Take(json.Marshal(object)), &tree))
	Say("%s: %s", what, Take(json.Marshal(stable(tree))))
}

func stable(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if volatile[key] || child == nil {
				delete(value, key)
			} else {
				value[key] = stable(child)
			}
		}
	case []any:
		for i := range value {
			value[i] = stable(value[i])
		}
	case string:
		if strings.HasPrefix(value, "kube-api-access-") {
			return "kube-api-access"
		}
	}
	return value
}

// Until repeats a question until its answer is yes.
func Until(ctx context.Context, what string, ask func() (bool, error)) {
	end := time.Now().Add(Patience)
	for {
		yes, err := ask()
		if err == nil && yes {
			return
		}
		if time.Now().After(end) {
			Fail("%s did not come about within %s (last error: %v)", what, Patience, err)
		}
		select {
		case <-ctx.Done():
			Fail("%s: %v", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Config is that of the server under test, without a limit of the client's own.
func Config() *rest.Config {
	config := Take(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	config.QPS = -1
	config.Timeout = 0
	return config
}
