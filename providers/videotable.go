package providers

// VideoTable is a VideoModel for clients and operators. Absent is any value; an empty list is a field that the model lacks.
type VideoTable struct {
	Seconds      []string     `json:"seconds,omitzero" doc:"Lengths in seconds"`
	Sizes        []string     `json:"sizes,omitzero" doc:"Widths and heights in pixels"`
	AspectRatios []string     `json:"aspect_ratios,omitzero"`
	Resolutions  []string     `json:"resolutions,omitzero"`
	Inputs       []VideoTakes `json:"inputs" nullable:"false" doc:"Inputs that the model accepts besides the prompt"`
	Audio        string       `json:"audio" enum:"never,optional,always" doc:"Whether the videos have sound"`
	N            int          `json:"n,omitempty" doc:"Maximum number of videos of one task"`
}

// VideoTakes is one kind of input in a VideoTable.
type VideoTakes struct {
	Name     string   `json:"name" enum:"image,last_image,reference_images,video,extend,audio" doc:"Field of the generic format; extend is a video to continue"`
	Max      int      `json:"max" doc:"Maximum number of inputs"`
	Types    []string `json:"types,omitempty" doc:"Media types of uploads"`
	MaxBytes int64    `json:"max_bytes,omitempty" doc:"Maximum size of an upload in bytes"`
	From     string   `json:"from,omitempty" enum:"link,upload" doc:"Set if the model accepts only links, or only uploads"`
}

// Table returns the VideoTable of the model.
func (m VideoModel) Table() VideoTable {
	words := func(list []string) []string {
		switch {
		case list == nil:
			return []string{}
		case takesAny(list):
			return nil
		}
		return list
	}
	table := VideoTable{
		Seconds: words(m.Seconds), Sizes: words(m.Sizes), AspectRatios: words(m.AspectRatios), Resolutions: words(m.Resolutions),
		Inputs: make([]VideoTakes, 0, len(m.Inputs)), Audio: string(m.Audio),
	}
	if m.Audio == AudioNever {
		table.Audio = "never"
	}
	if m.N != AnyNumber {
		table.N = max(m.N, 1)
	}
	for _, input := range m.Inputs {
		takes := VideoTakes{Name: roleField(input.Role), Max: max(input.Max, 1), Types: input.types(), MaxBytes: input.MaxBytes}
		switch {
		case input.NoLinks:
			takes.From = "upload"
		case input.LinksOnly:
			takes.From, takes.Types, takes.MaxBytes = "link", nil, 0
		}
		table.Inputs = append(table.Inputs, takes)
	}
	return table
}
