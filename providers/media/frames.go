package media

// framesBuffer is how much of a file is read at once while its frames are counted, in bytes.
const framesBuffer = 64 << 10

// frames adds up the frames of MP3 (ISO/IEC 11172-3, 13818-3) or AAC in ADTS (ISO/IEC 13818-7), which have no common header.
func (f *reader) frames() float64 {
	at := int64(0)
	if tag := f.bytes(0, 10); len(tag) == 10 && string(tag[:3]) == "ID3" {
		at = 10 + (int64(tag[6]&127)<<21 | int64(tag[7]&127)<<14 | int64(tag[8]&127)<<7 | int64(tag[9]&127))
	}
	window, from := []byte(nil), int64(0)
	var seconds float64
	for first := true; ; first = false {
		if at < from || at+frameHeader > from+int64(len(window)) {
			window, from = f.bytes(at, framesBuffer), at
		}
		if at-from+frameHeader > int64(len(window)) {
			return seconds
		}
		length, duration, info := frame(window[at-from:])
		if length == 0 {
			return seconds // the end of the sound: a tag may follow
		}
		if !first || !info {
			seconds += duration
		}
		at += int64(length)
	}
}

// frameHeader is how many bytes of a frame are read: the header, and the position of a Xing header.
const frameHeader = 7

// frame reads the header of a frame: its length in bytes, 0 if there is none, and its duration in seconds. info reports a frame that may
// contain the table of a file of variable rate instead of sound. The table is not read, because it is one frame of thousands.
func frame(b []byte) (length int, seconds float64, info bool) {
	if b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return 0, 0, false
	}
	if b[1]&0xf6 == 0xf0 {
		length, seconds = adts(b)
		return length, seconds, false
	}
	length, seconds = mpeg(b)
	return length, seconds, true
}

func adts(b []byte) (length int, seconds float64) {
	rates := [...]float64{96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350}
	rate := int(b[2] >> 2 & 15)
	length = int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5]>>5)
	if rate >= len(rates) || length < frameHeader {
		return 0, 0
	}
	return length, 1024 * float64(b[6]&3+1) / rates[rate] //nolint:gosec // checked above
}

func mpeg(b []byte) (length int, seconds float64) {
	version, layer := b[1]>>3&3, 4-int(b[1]>>1&3)
	rate := [...]int{44100, 48000, 32000, 0}[b[2]>>2&3]
	if version == 1 || layer == 4 || rate == 0 {
		return 0, 0
	}
	samples := [...]int{384, 1152, 1152}[layer-1]
	old := [...][15]int{
		{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
		{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	}
	low := [...][15]int{
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
	}
	index := b[2] >> 4
	if index == 0 || index == 15 {
		return 0, 0
	}
	kilobits := old[layer-1][index]
	if version != 3 { // MPEG 2, and 2.5 with half of its rates
		kilobits = low[min(layer-1, 1)][index]
		rate /= 2
		if version == 0 {
			rate /= 2
		}
		if layer == 3 {
			samples = 576
		}
	}
	padding := int(b[2] >> 1 & 1)
	if layer == 1 {
		return (12*kilobits*1000/rate + padding) * 4, float64(samples) / float64(rate)
	}
	return samples/8*kilobits*1000/rate + padding, float64(samples) / float64(rate)
}
