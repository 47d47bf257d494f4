package admin

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
)

// Paths of the channels and the models.
const (
	channelsPath = Root + "/channels"
	channelPath  = channelsPath + "/{name}"
	modelsPath   = Root + "/models"
)

// addChannels adds the operations on channels, on the models that they serve, and on the setup.
func addChannels(g *edge.Group, s *operator.Service) {
	register(g, huma.Operation{
		OperationID: "adminListChannels", Method: http.MethodGet, Path: channelsPath, Summary: "How the channels are doing",
		Description: "By name: state, cooldown, calls in flight and rates of each channel, of its models that are not closed, and of each of its keys, which are named by their fingerprints.",
	}, s.ListChannels)
	register(g, huma.Operation{
		OperationID: "adminGetChannel", Method: http.MethodGet, Path: channelPath, Summary: "How a channel is doing",
	}, s.Channel)
	register(g, huma.Operation{
		OperationID: "adminPauseChannel", Method: http.MethodPost, Path: channelPath + "/pause", Summary: "Pause a channel",
		Description: "No call goes there and no new video job, in any process within a second; video jobs that run there go on being polled. " +
			"It holds over restarts. A pause that is there already is replaced.",
	}, s.PauseChannel)
	register(g, huma.Operation{
		OperationID: "adminResumeChannel", Method: http.MethodPost, Path: channelPath + "/resume", Summary: "End a channel's pause",
		Description: "In every process within a second. One that is not paused stays as it is.",
	}, s.ResumeChannel)
	register(g, huma.Operation{
		OperationID: "adminWakeChannel", Method: http.MethodPost, Path: channelPath + "/wake", Summary: "End a channel's cooldowns",
		Description: "Those of its models and keys too, in every process within a second. What goes on failing cools down again.",
	}, s.WakeChannel)
	register(g, huma.Operation{
		OperationID: "adminTestChannel", Method: http.MethodPost, Path: channelPath + "/test", Summary: "Test a channel",
		Description: "Asks the vendor something free (models, the account, an unknown job) with one key, and reports whether address, key and rights are good. " +
			"No other channel or key is asked, no token is charged, and a paused channel, or one that cools down, is asked as well.",
	}, s.TestChannel)
	register(g, huma.Operation{
		OperationID: "adminListModels", Method: http.MethodGet, Path: modelsPath, Summary: "List the models of all groups",
		Description: "By name: what reaches each model, who serves it now, what it costs, how long its videos take and what it was used for; and what was used without a price.",
	}, s.ListModels)
	register(g, huma.Operation{
		OperationID: "adminGetModel", Method: http.MethodGet, Path: modelsPath + "/{name}", Summary: "Get a model",
		Description: "With all channels that serve it.",
	}, s.Model)
	register(g, huma.Operation{
		OperationID: "adminDraftPrices", Method: http.MethodPost, Path: Root + "/prices/draft", Summary: "Draft prices from a public list",
		Description: "The body is models.dev's api.json, up to 8 MiB. Nothing is fetched and nothing is changed: the answer has YAML to put into the " +
			"configuration file, and what it differs in. Prices of tokens are read; the list's currency is taken for the file's.",
		MaxBodyBytes: operator.MostPriceList, BodyReadTimeout: priceListTimeout,
	}, s.DraftPrices)
	register(g, huma.Operation{
		OperationID: "adminGetSetup", Method: http.MethodGet, Path: Root + "/setup", Summary: "Look at the set-up",
		Description: "Checks what the gateway depends on, all parts at once and each by itself, and names the command that fixes what is wrong. " +
			"It answers within five seconds whatever is away; answers of the last two seconds are shared.",
	}, s.Setup)
}

// priceListTimeout is how long a price list may take to arrive.
const priceListTimeout = time.Minute
