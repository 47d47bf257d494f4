package clip

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/draw"
	"image/png"
)

// Paint returns a small PNG whose colour depends on the prompt and the index.
func Paint(prompt string, index int) []byte {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, index, prompt[:min(len(prompt), 100)]) // never fails
	sum := h.Sum32()
	picture := image.NewRGBA(image.Rect(0, 0, 32, 32))
	fill := color.RGBA{uint8(sum), uint8(sum >> 8), uint8(sum >> 16), 255}
	draw.Draw(picture, picture.Bounds(), image.NewUniform(fill), image.Point{}, draw.Src)
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // a buffer takes it all
	return b.Bytes()
}
