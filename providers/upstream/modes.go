package upstream

import "modelrelay/providers"

// Modes are the ways of a vendor that makes videos in another way for each kind of input.
type Modes[M any] struct {
	// Text is of a create that has a prompt alone, Image of one with a first frame, Frames of one with a last frame as well.
	Text, Image, Frames M
	// References is of a create with references, Video of one that extends a video.
	References, Video M
}

// Of is the way of a create. The first input that is no first frame decides; the vendor's checks refuse what does not go with it.
func (m Modes[M]) Of(shape providers.VideoShape) M {
	at := m.Text
	for _, input := range shape.Inputs {
		switch input.Role {
		case providers.ExtendVideo:
			return m.Video
		case providers.Reference:
			return m.References
		case providers.LastFrame:
			return m.Frames
		case providers.FirstFrame:
			at = m.Image
		}
	}
	return at
}
