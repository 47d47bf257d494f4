package vendorc

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// The paths of the actions.
const (
	submitPath = "/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
	resultPath = "/?Action=CVSync2AsyncGetResult&Version=2022-08-31"
)

// The adapter's data of a ticket: the vendor finds a job only with the req_key that made it. req_json is sent with every poll. It selects
// how the vendor marks the linked video.
const (
	keyField  = "req_key"
	jsonField = "req_json"
)

// Videos implements the jobs of CVSync2AsyncSubmitTask. The vendor neither looks up jobs by the gateway's key nor cancels them.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: string(providers.VendorC), Authorize: authorize, Code: codes(), Refused: refused, Classify: classify, Reason: reason,
		}),
		Create: create, ID: []string{"data.task_id"}, Read: read, Status: status, Links: links, UnknownJob: "1",
		Lost: func(error) bool { return false }, // an unknown job is a status
	}}
}

func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	known := upstream.DocOf(ticket.Data)
	asked := map[string]string{"task_id": ticket.Job, keyField: cmp.Or(string(known.Get(keyField)), to.Model)}
	if text := known.Get(jsonField); text != "" {
		asked[jsonField] = string(text)
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, providers.Unwritable(err)
	}
	job, err := jobs.Read(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: resultPath, Body: body})
	if fault := providers.AsFault(err); endsJob(fault) {
		return upstream.DocOf(fault.Upstream.Body), nil
	}
	return job, err
}
