package pricing

// Sound says whether a video has sound.
type Sound string

// What there is. The zero Sound is not known, and in a Tier stands for either.
const (
	SoundOn  Sound = "true"
	SoundOff Sound = "false"
)

// Tier is the price of videos of one kind.
type Tier struct {
	// Resolution is a word as providers.ResolutionWord writes it, "" for every one.
	Resolution string
	Sound      Sound
	// Second is per second of video made, Video per video.
	Second, Video *Rate
}

// fit is how surely a tier is that of a measure.
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

// Covers tells whether every video that the other tier fits is one that t fits.
func (t Tier) Covers(other Tier) bool {
	return t.fit(Measure{Resolution: other.Resolution, Sound: other.Sound}) == fitsSurely
}

// tier is what a video costs by the second and by the piece: the first tier's that surely fits, else the price's own.
func (p Price) tier(m Measure) (second, video *Rate) {
	for _, tier := range p.Tiers {
		if tier.fit(m) == fitsSurely {
			return tier.Second, tier.Video
		}
	}
	return p.VideoSecond, p.Video
}

// Most is what a measure costs at most, where it is not known what the videos are like: the dearest of the tiers that may
// fit. Where everything is known it is Cost.
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
