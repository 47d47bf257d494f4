package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers/router"
)

type adminChannelList struct {
	Object string                `json:"object" enum:"list"`
	Data   []router.ChannelState `json:"data" nullable:"false"`
}

// addAdminChannels adds the channels' state.
func (s *Server) addAdminChannels(g *edge.Group) {
	huma.Register(g, huma.Operation{
		OperationID: "adminListChannels", Method: http.MethodGet, Path: "/admin/channels", Summary: "How the channels are doing",
		Description: "State, cooldown, calls in flight and rates of every channel, of its models that are not closed, and of each of its keys, which are named by their fingerprints.",
		Responses:   edge.DeclareDefault(),
	}, func(ctx context.Context, _ *struct{}) (*struct{ Body adminChannelList }, error) {
		states, err := s.admin.Channels(ctx)
		if err != nil {
			return nil, storeFault("channel", "", err)
		}
		return &struct{ Body adminChannelList }{adminChannelList{Object: "list", Data: states}}, nil
	})
}
