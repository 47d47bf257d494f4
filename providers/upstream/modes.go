package upstream

import "modelrelay/providers"

// Modes are the modes of a vendor that handles each kind of input differently.
type Modes[M any] struct {
	// Text is for a prompt only, Image for a first frame, Frames for a last frame as well.
	Text, Image, Frames M
	// References is for references, Video for extending a video.
	References, Video M
}

// Of returns the mode of a create. The first input that is not a first frame decides. Other inputs are refused by checks.
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
