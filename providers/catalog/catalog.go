// Package catalog is the table of vendors: the one place that names them all.
//
// It must not import anything of the product but providers and the vendors.
package catalog

import (
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/anthropic"
	"modelrelay/providers/ark"
	"modelrelay/providers/fal"
	"modelrelay/providers/gemini"
	"modelrelay/providers/generic"
	"modelrelay/providers/hailuo"
	"modelrelay/providers/kling"
	"modelrelay/providers/luma"
	"modelrelay/providers/omni"
	"modelrelay/providers/openai"
	"modelrelay/providers/pixverse"
	"modelrelay/providers/replicate"
	"modelrelay/providers/runway"
	"modelrelay/providers/vendorc"
	"modelrelay/providers/veo"
	"modelrelay/providers/vidu"
	"modelrelay/providers/wan"
	"modelrelay/providers/xai"
	"modelrelay/providers/zhipu"
)

// New returns every vendor there is, sending through the process's client to upstreams.
func New(client *http.Client) providers.Catalog {
	return providers.Catalog{
		"anthropic": {
			Name:         "anthropic",
			Relay:        anthropic.NewRelayer(client),
			Endpoints:    anthropic.Endpoints(),
			Takes:        anthropic.Endpoints(),
			Usage:        anthropic.Usage(),
			CheckBaseURL: anthropic.CheckBaseURL,
		},
		"ark": {
			Name:        "ark",
			BaseURL:     ark.BaseURL,
			Video:       ark.NewVideos(client),
			VideoModels: ark.VideoModels,
			RefuseVideo: ark.RefuseVideo,
		},
		"fal": {
			Name:        "fal",
			BaseURL:     fal.BaseURL,
			Video:       fal.NewVideos(client),
			VideoModels: fal.VideoModels,
			NamesFields: true,
		},
		"gemini": {
			Name:         "gemini",
			Provider:     "gcp.gemini",
			Relay:        gemini.NewRelayer(client),
			Endpoints:    gemini.Endpoints(),
			Takes:        gemini.Endpoints(),
			Usage:        gemini.Usage(),
			CheckBaseURL: gemini.CheckBaseURL,
		},
		"generic": {
			Name:        "generic",
			Video:       generic.NewVideos(client),
			VideoModels: generic.VideoModels,
			Several:     true,
		},
		"hailuo": {
			Name:        "hailuo",
			BaseURL:     hailuo.BaseURL,
			Video:       hailuo.NewVideos(client),
			VideoModels: hailuo.VideoModels,
			RefuseVideo: hailuo.RefuseVideo,
		},
		"kling": {
			Name:        "kling",
			BaseURL:     kling.BaseURL,
			Video:       kling.NewVideos(client),
			VideoModels: kling.VideoModels,
			RefuseVideo: kling.RefuseVideo,
			CheckKey:    kling.CheckKey,
		},
		"luma": {
			Name:        "luma",
			BaseURL:     luma.BaseURL,
			Video:       luma.NewVideos(client),
			VideoModels: luma.VideoModels,
			RefuseVideo: luma.RefuseVideo,
		},
		"omni": {
			Name:        "omni",
			Provider:    "gcp.gemini",
			BaseURL:     omni.BaseURL,
			Video:       omni.NewVideos(client),
			VideoModels: omni.VideoModels,
			RefuseVideo: omni.RefuseVideo,
		},
		"openai": {
			Name:        "openai",
			Relay:       openai.NewRelayer(client),
			Endpoints:   openai.Endpoints(),
			Takes:       openai.Takes(),
			Usage:       openai.Usage(),
			Video:       openai.NewVideos(client),
			VideoModels: openai.VideoModels,
			Realtime:    openai.NewRealtime(client),
		},
		"pixverse": {
			Name:        "pixverse",
			BaseURL:     pixverse.BaseURL,
			Video:       pixverse.NewVideos(client),
			VideoModels: pixverse.VideoModels,
			RefuseVideo: pixverse.RefuseVideo,
		},
		"replicate": {
			Name:        "replicate",
			BaseURL:     replicate.BaseURL,
			Video:       replicate.NewVideos(client),
			VideoModels: replicate.VideoModels,
			NamesFields: true,
		},
		"runway": {
			Name:        "runway",
			BaseURL:     runway.BaseURL,
			Video:       runway.NewVideos(client),
			VideoModels: runway.VideoModels,
			RefuseVideo: runway.RefuseVideo,
		},
		"vendorc": {
			Name:        "vendorc",
			Video:       vendorc.NewVideos(client),
			VideoModels: vendorc.VideoModels,
			CheckKey:    vendorc.CheckKey,
		},
		"veo": {
			Name:         "veo",
			Provider:     "gcp.vertex_ai",
			BaseURL:      veo.BaseURL,
			Video:        veo.NewVideos(client),
			Several:      true,
			VideoModels:  veo.VideoModels,
			RefuseVideo:  veo.RefuseVideo,
			CheckBaseURL: veo.CheckBaseURL,
			CheckKey:     veo.CheckKey,
		},
		"vidu": {
			Name:        "vidu",
			BaseURL:     vidu.BaseURL,
			Video:       vidu.NewVideos(client),
			VideoModels: vidu.VideoModels,
			RefuseVideo: vidu.RefuseVideo,
		},
		"wan": {
			Name:        "wan",
			BaseURL:     wan.BaseURL,
			Video:       wan.NewVideos(client),
			VideoModels: wan.VideoModels,
			RefuseVideo: wan.RefuseVideo,
		},
		"xai": {
			Name:        "xai",
			Provider:    "x_ai",
			BaseURL:     xai.BaseURL,
			Video:       xai.NewVideos(client),
			VideoModels: xai.VideoModels,
			RefuseVideo: xai.RefuseVideo,
		},
		"zhipu": {
			Name:        "zhipu",
			BaseURL:     zhipu.BaseURL,
			Video:       zhipu.NewVideos(client),
			VideoModels: zhipu.VideoModels,
			RefuseVideo: zhipu.RefuseVideo,
		},
	}
}
