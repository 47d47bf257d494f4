package stack

// VideoVendor is a vendor that makes videos, as its fake has it. Its channel is called as it is, and so is its model's public name.
type VideoVendor struct {
	Name   string
	Vendor string // "": as the name
	Path   string // of the channel's address, below that of the fakes
	Key    string // "": sk-upstream- and the name; account: a service account's key, which the fake hands out
	Model  string // the vendor's name of the model
	// Seconds are of a video that the model makes, from an image as well; Size is of one from a prompt alone.
	Seconds int
	Size    string
	// Image: the model takes a first frame. Named: its job tells the digest of the text that named the image, not of the bytes.
	Image, Named bool
	// Finds: a job whose answer was lost is looked up. Repeats: it is by the create itself, under its idempotency key.
	Finds, Repeats bool
	// Content is the operation whose answer holds the result; "" for video.content, the answer of a link.
	Content string
}

// VideoVendors are all vendors that make videos. A row is all that the tests over all of them need of a new one.
func VideoVendors() []VideoVendor {
	return []VideoVendor{
		{Name: "openai", Path: "/openai/v1", Model: "sora-2", Seconds: 4, Size: "1280x720", Image: true},
		{Name: "generic", Path: "/generic/v1", Model: "generic-video", Seconds: 4, Size: "1280x720", Image: true, Named: true, Finds: true, Repeats: true},
		{Name: "vendorc", Path: "/vendorc", Key: "ak-upstream-vendorc:sk-upstream-vendorc", Model: "jimeng_ti2v_v30_pro", Seconds: 5, Size: "1280x720", Image: true},
		{Name: "kling", Path: "/kling", Model: "kling-3.0", Seconds: 5, Size: "1280x720", Image: true, Finds: true},
		{Name: "ark", Path: "/ark/api/v3", Model: "doubao-seedance-2-0-260128", Seconds: 5, Size: "1280x720", Image: true, Finds: true},
		{Name: "hailuo", Path: "/hailuo", Model: "MiniMax-H3", Seconds: 5, Size: "1366x768", Image: true},
		{Name: "wan", Path: "/wan", Model: "wan3.0-video", Seconds: 5, Size: "1280x720", Image: true},
		{Name: "vidu", Path: "/vidu", Model: "viduq3-turbo", Seconds: 5, Size: "1280x720", Image: true, Finds: true},
		{Name: "pixverse", Path: "/pixverse", Model: "v6", Seconds: 5, Size: "1280x720", Image: true},
		{Name: "zhipu", Path: "/zhipu", Model: "cogvideox-3", Seconds: 5, Size: "1280x720", Image: true},
		{Name: "fal", Path: "/fal", Model: "fal-ai/veo3.1", Seconds: 8, Size: "1280x720"},
		{Name: "fal-image", Vendor: "fal", Path: "/fal", Model: "some-one/mover", Seconds: 5, Size: "1280x720", Image: true},
		{Name: "replicate", Path: "/replicate/v1", Model: "google/veo-3.1", Seconds: 8, Size: "1280x720", Image: true},
		{Name: "ltx", Path: "/ltx", Model: "ltx-2-5-pro", Seconds: 6, Size: "1280x720", Image: true},
		{Name: "luma", Path: "/luma/v1", Model: "ray-3.2", Seconds: 5, Size: "1280x720", Image: true},
		{Name: "omni", Path: "/omni/v1beta", Model: "gemini-omni-1.2-flash", Seconds: 6, Size: "1280x720", Image: true},
		{Name: "runway", Path: "/runway", Model: "gen4.5", Seconds: 5, Size: "1280x720", Image: true},
		{Name: "veo", Path: "/veo/v1/projects/fake-project/locations/us-central1", Key: account, Model: "veo-3.1-generate-001", Seconds: 8, Size: "1280x720", Image: true, Content: "video.get"},
		{Name: "veo-key", Vendor: "veo", Path: "/veo/v1beta", Model: "veo-3.1-generate-preview", Seconds: 8, Size: "1280x720", Image: true},
		{Name: "xai", Path: "/xai/v1", Model: "grok-imagine-video", Seconds: 6, Size: "1280x720", Image: true},
	}
}

// account stands for the key of a service account.
const account = "account"
