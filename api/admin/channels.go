package admin

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
)

const (
	channelsPath = Root + "/channels"
	channelPath  = channelsPath + "/{name}"
	modelsPath   = Root + "/models"
)

func addChannels(g *edge.Group, s *operator.Service) {
	register(g, huma.Operation{
		OperationID: "adminListChannels", Method: http.MethodGet, Path: channelsPath, Summary: "List the states of the channels",
		Description: "Sorted by name: state, cooldown, calls in flight and rates of each channel, of its models that are not closed, and of each key. " +
			"A key is named by its fingerprint.",
	}, s.ListChannels)
	register(g, huma.Operation{
		OperationID: "adminGetChannel", Method: http.MethodGet, Path: channelPath, Summary: "Get the state of a channel",
		Description: "State, cooldown, calls in flight and rates of the channel, its models and its keys.",
	}, s.Channel)
	register(g, huma.Operation{
		OperationID: "adminPauseChannel", Method: http.MethodPost, Path: channelPath + "/pause", Summary: "Pause a channel",
		Description: "Within a second no process sends calls or new video jobs to the channel. Its running video jobs continue. " +
			"The pause survives restarts, and replaces an earlier one.",
	}, s.PauseChannel)
	register(g, huma.Operation{
		OperationID: "adminResumeChannel", Method: http.MethodPost, Path: channelPath + "/resume", Summary: "End a channel's pause",
		Description: "Takes effect in every process within a second. A channel that is not paused does not change.",
	}, s.ResumeChannel)
	register(g, huma.Operation{
		OperationID: "adminWakeChannel", Method: http.MethodPost, Path: channelPath + "/wake", Summary: "End a channel's cooldowns",
		Description: "The cooldowns of its models and keys end too, in every process within a second. Another failure starts a new cooldown.",
	}, s.WakeChannel)
	register(g, huma.Operation{
		OperationID: "adminTestChannel", Method: http.MethodPost, Path: channelPath + "/test", Summary: "Test a channel",
		Description: "Sends the vendor a free request (models, the account, an unknown job) with one key, " +
			"and reports whether address, key and rights are correct. " +
			"It uses no other channel or key and charges no token. It also tests a channel that is paused or cools down.",
	}, s.TestChannel)
	register(g, huma.Operation{
		OperationID: "adminListModels", Method: http.MethodGet, Path: modelsPath, Summary: "List the models of all groups",
		Description: "Sorted by name: the formats and channels of each model, its price, the usual time of its videos and its use in the last 30 days. " +
			"Also the models that were used without a price.",
	}, s.ListModels)
	register(g, huma.Operation{
		OperationID: "adminGetModel", Method: http.MethodGet, Path: modelsPath + "/{name}", Summary: "Get a model",
		Description: "The model with all channels that serve it.",
	}, s.Model)
	register(g, huma.Operation{
		OperationID: "adminDraftPrices", Method: http.MethodPost, Path: Root + "/prices/draft", Summary: "Draft prices from a public list",
		Description: "The body is models.dev's api.json, up to 8 MiB. The operation fetches and changes nothing: the answer has YAML for the " +
			"configuration file, and the differences. It reads prices of tokens, and assumes that the list has the currency of the file.",
		MaxBodyBytes: operator.MostPriceList, BodyReadTimeout: priceListTimeout,
	}, s.DraftPrices)
	register(g, huma.Operation{
		OperationID: "adminGetSetup", Method: http.MethodGet, Path: Root + "/setup", Summary: "Check the setup",
		Description: "Checks all dependencies of the gateway at the same time, and names the command that fixes each fault. " +
			"It answers within five seconds even if a dependency does not respond. Callers within two seconds share an answer.",
	}, s.Setup)
}

const priceListTimeout = time.Minute
