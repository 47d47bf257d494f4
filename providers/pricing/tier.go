package pricing

// Sound is whether a video has sound.
type Sound string

// The values of Sound. The zero value means unknown, and either in a Tier.
const (
	SoundOn  Sound = "true"
	SoundOff Sound = "false"
)

// Tier is the price of videos of one kind.
type Tier struct {
	// Resolution is a word as providers.ResolutionWord writes it, "" for any.
	Resolution string
	Sound      Sound
	// Second is per second of video made, Video per video.
	Second, Video *Rate
}

// fit is whether a tier matches a measure.
type fit int

const (
	fitsNot fit = iota
	fitsMaybe
	fitsSurely
)

func (t Tier) fit(m Measure) fit {
	return min(fitOf(t.Resolution, m.Resolution), fitOf(string(t.Sound), string(m.Sound)))
}

func fitOf(wanted, known string) fit {
	switch {
	case wanted == "" || wanted == known:
		return fitsSurely
	case known == "":
		return fitsMaybe
	}
	return fitsNot
}

// Covers reports whether t matches every video that the other tier matches.
func (t Tier) Covers(other Tier) bool {
	return t.fit(Measure{Resolution: other.Resolution, Sound: other.Sound}) == fitsSurely
}

// tier returns the price of a video by second and piece: that of the first tier that certainly matches, otherwise the price's own.
func (p Price) tier(m Measure) (second, video *Rate) {
	for _, tier := range p.Tiers {
		if tier.fit(m) == fitsSurely {
			return tier.Second, tier.Video
		}
	}
	return p.VideoSecond, p.Video
}

// Most returns the highest cost of a measure: that of the dearest tier that may match. If all properties are known, it is Cost.
func (p Price) Most(m Measure) Money {
	var most Money
	for _, tier := range p.Tiers {
		fit := tier.fit(m)
		if fit != fitsNot {
			most = max(most, p.cost(m, tier.Second, tier.Video))
		}
		if fit == fitsSurely {
			return most
		}
	}
	return max(most, p.cost(m, p.VideoSecond, p.Video))
}
