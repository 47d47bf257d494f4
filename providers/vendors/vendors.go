// Package vendors is the table of vendors. No other package has them all.
//
// Of the product it must import only providers and the vendors.
package vendors

import (
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/anthropic"
	"modelrelay/providers/ark"
	"modelrelay/providers/bfl"
	"modelrelay/providers/fal"
	"modelrelay/providers/gemini"
	"modelrelay/providers/generic"
	"modelrelay/providers/hailuo"
	"modelrelay/providers/kling"
	"modelrelay/providers/ltx"
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

// New returns all vendors by name. They send through the client.
func New(client *http.Client) providers.Catalog {
	catalog := providers.Catalog{
		"anthropic": {
			Relay:        anthropic.NewRelayer(client),
			Endpoints:    anthropic.Endpoints(),
			Takes:        anthropic.Endpoints(),
			Usage:        anthropic.Usage(),
			Traits:       anthropic.Traits,
			Priced:       anthropic.Priced(),
			CheckBaseURL: anthropic.CheckBaseURL,
		},
		"ark": {
			BaseURL:    ark.BaseURL,
			Video:      ark.NewVideos(client),
			VideoUsual: providers.Footage{Seconds: "5", Resolution: "720p"},
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"duration"}, Frames: []string{"frames"}, FPS: 24,
				Resolutions: []string{"resolution"}, Audio: []string{"generate_audio"},
			},
			VideoModels: ark.VideoModels,
			Priced:      ark.Priced(),
			RefuseVideo: ark.RefuseVideo,
		},
		"bfl": {
			BaseURL:    bfl.BaseURL,
			Video:      bfl.NewVideos(client),
			VideoUsual: providers.Footage{Seconds: "5", Resolution: "720p"},
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"duration"}, Resolutions: []string{"resolution"},
				Modes: map[string]string{"hd": "720p", "fhd": "1080p"}, Audio: []string{"generate_audio"},
			},
			VideoModels: bfl.VideoModels,
			RefuseVideo: bfl.RefuseVideo,
		},
		"fal": {
			BaseURL: fal.BaseURL,
			Video:   fal.NewVideos(client),
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"duration", "seconds"}, Frames: []string{"num_frames"}, FPS: 16,
				Resolutions: []string{"resolution", "video_size"}, Audio: []string{"generate_audio"},
			},
			VideoModels: fal.VideoModels,
			NamesFields: true,
		},
		"gemini": {
			Provider:     "gcp.gemini",
			Relay:        gemini.NewRelayer(client),
			Endpoints:    gemini.Endpoints(),
			Takes:        gemini.Endpoints(),
			Usage:        gemini.Usage(),
			Traits:       gemini.Traits,
			Priced:       gemini.Priced(),
			CheckBaseURL: gemini.CheckBaseURL,
		},
		"generic": {
			Video: generic.NewVideos(client),
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"duration", "seconds"}, Resolutions: []string{"resolution", "size"},
				Audio: []string{"generate_audio"}, Videos: []string{"n"},
			},
			VideoModels: generic.VideoModels,
			Several:     true,
		},
		"hailuo": {
			BaseURL:     hailuo.BaseURL,
			Video:       hailuo.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "6", Resolution: "768p"},
			VideoPaths:  providers.VideoPaths{Seconds: []string{"duration"}, Resolutions: []string{"resolution"}},
			VideoModels: hailuo.VideoModels,
			RefuseVideo: hailuo.RefuseVideo,
		},
		"kling": {
			BaseURL:    kling.BaseURL,
			Video:      kling.NewVideos(client),
			VideoUsual: providers.Footage{Seconds: "5", Resolution: "720p"},
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"settings.duration", "duration"}, Resolutions: []string{"settings.resolution", "mode"},
				Audio: []string{"settings.audio", "sound"},
				Modes: map[string]string{"std": "720p", "pro": "1080p", "4k": "4k"},
			},
			VideoModels: kling.VideoModels,
			RefuseVideo: kling.RefuseVideo,
			CheckKey:    kling.CheckKey,
		},
		"ltx": {
			BaseURL:     ltx.BaseURL,
			Video:       ltx.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "6", Resolution: "1080p"},
			VideoPaths:  providers.VideoPaths{Seconds: []string{"duration"}, Resolutions: []string{"resolution"}, Audio: []string{"generate_audio"}},
			VideoModels: ltx.VideoModels,
			RefuseVideo: ltx.RefuseVideo,
		},
		"luma": {
			BaseURL:      luma.BaseURL,
			CheckBaseURL: luma.CheckBaseURL,
			Video:        luma.NewVideos(client),
			VideoUsual:   providers.Footage{Seconds: "5", Resolution: "720p"},
			VideoPaths:   providers.VideoPaths{Seconds: []string{"video.duration"}, Resolutions: []string{"video.resolution"}},
			VideoModels:  luma.VideoModels,
			RefuseVideo:  luma.RefuseVideo,
		},
		"omni": {
			Provider:    "gcp.gemini",
			BaseURL:     omni.BaseURL,
			Video:       omni.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "8", Resolution: "720p"},
			VideoPaths:  providers.VideoPaths{Seconds: []string{"response_format.duration"}, Resolutions: []string{"response_format.resolution"}},
			VideoModels: omni.VideoModels,
			RefuseVideo: omni.RefuseVideo,
		},
		"openai": {
			Relay:      openai.NewRelayer(client),
			Endpoints:  openai.Endpoints(),
			Takes:      openai.Takes(),
			Usage:      openai.Usage(),
			Traits:     openai.Traits,
			Video:      openai.NewVideos(client),
			VideoUsual: providers.Footage{Seconds: "4"},
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"seconds", "duration"}, Resolutions: []string{"size", "resolution"},
				Audio: []string{"generate_audio"},
			},
			VideoModels: openai.VideoModels,
			Realtime:    openai.NewRealtime(client),
			Priced:      openai.Priced(),
			Dialects:    true,
		},
		"pixverse": {
			BaseURL:    pixverse.BaseURL,
			Video:      pixverse.NewVideos(client),
			VideoUsual: providers.Footage{Seconds: "5", Resolution: "540p"},
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"duration"}, Resolutions: []string{"quality"},
				Audio: []string{"generate_audio_switch"},
			},
			VideoModels: pixverse.VideoModels,
			RefuseVideo: pixverse.RefuseVideo,
		},
		"replicate": {
			BaseURL: replicate.BaseURL,
			Video:   replicate.NewVideos(client),
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"duration", "seconds"}, Frames: []string{"num_frames"}, FPS: 16,
				Resolutions: []string{"resolution", "size"}, Audio: []string{"generate_audio"},
			},
			VideoModels: replicate.VideoModels,
			NamesFields: true,
		},
		"runway": {
			BaseURL:     runway.BaseURL,
			Video:       runway.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "5", Resolution: "720p"},
			VideoPaths:  providers.VideoPaths{Seconds: []string{"duration"}, Resolutions: []string{"resolution", "ratio"}, Audio: []string{"audio"}},
			VideoModels: runway.VideoModels,
			RefuseVideo: runway.RefuseVideo,
		},
		"vendorc": {
			Video:       vendorc.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "5", Resolution: "720p"},
			VideoPaths:  providers.VideoPaths{Frames: []string{"frames"}, FPS: 24},
			VideoModels: vendorc.VideoModels,
			CheckKey:    vendorc.CheckKey,
		},
		"veo": {
			Provider:   "gcp.vertex_ai",
			BaseURL:    veo.BaseURL,
			Video:      veo.NewVideos(client),
			VideoUsual: providers.Footage{Seconds: "8", Resolution: "720p"},
			VideoPaths: providers.VideoPaths{
				Seconds: []string{"parameters.durationSeconds"}, Resolutions: []string{"parameters.resolution"},
				Audio:  []string{"parameters.generateAudio"},
				Videos: []string{"parameters.sampleCount"},
			},
			Several:      true,
			VideoModels:  veo.VideoModels,
			RefuseVideo:  veo.RefuseVideo,
			CheckBaseURL: veo.CheckBaseURL,
			CheckKey:     veo.CheckKey,
		},
		"vidu": {
			BaseURL:     vidu.BaseURL,
			Video:       vidu.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "5", Resolution: "720p"},
			VideoPaths:  providers.VideoPaths{Seconds: []string{"duration"}, Resolutions: []string{"resolution"}, Audio: []string{"audio"}},
			VideoModels: vidu.VideoModels,
			RefuseVideo: vidu.RefuseVideo,
		},
		"wan": {
			BaseURL:    wan.BaseURL,
			Video:      wan.NewVideos(client),
			VideoUsual: providers.Footage{Seconds: "5", Resolution: "1080p"},
			VideoPaths: providers.VideoPaths{
				Seconds:     []string{"parameters.duration"},
				Resolutions: []string{"parameters.resolution", "parameters.size"}, Audio: []string{"parameters.audio"},
			},
			VideoModels: wan.VideoModels,
			RefuseVideo: wan.RefuseVideo,
		},
		"xai": {
			Provider:    "x_ai",
			BaseURL:     xai.BaseURL,
			Video:       xai.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "6", Resolution: "480p"},
			VideoPaths:  providers.VideoPaths{Seconds: []string{"duration"}, Resolutions: []string{"resolution"}, Audio: []string{"generate_audio"}},
			VideoModels: xai.VideoModels,
			RefuseVideo: xai.RefuseVideo,
		},
		"zhipu": {
			BaseURL:     zhipu.BaseURL,
			Video:       zhipu.NewVideos(client),
			VideoUsual:  providers.Footage{Seconds: "5", Resolution: "1080p"},
			VideoPaths:  providers.VideoPaths{Seconds: []string{"duration"}, Resolutions: []string{"size"}, Audio: []string{"with_audio"}},
			VideoModels: zhipu.VideoModels,
			RefuseVideo: zhipu.RefuseVideo,
		},
	}
	for name, vendor := range catalog {
		vendor.Name = name
		catalog[name] = vendor
	}
	return catalog
}
