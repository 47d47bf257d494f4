package growth

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The measures of a picture, in px.
const (
	width     = 420 // of one chart
	height    = 260
	perRow    = 2
	left      = 56 // the axes' margins
	right     = 18
	top       = 34
	bottom    = 58
	mostTicks = 5 // of an axis
)

// colours of the series, told apart by people who see few colours too.
const colours = "#0b6bcb #d1660a #2c8a4b #8a3fbf #7a6a00"

// SVG draws the charts, two in a row, as one picture with nothing but itself in it.
func SVG(w io.Writer, charts ...Chart) error {
	for _, c := range charts {
		if err := c.check(); err != nil {
			return err
		}
	}
	columns := min(perRow, len(charts))
	rows := (len(charts) + perRow - 1) / perRow
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="11">`+"\n",
		columns*width, rows*height)
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%perRow*width, i/perRow*height)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Chart) draw(b *strings.Builder) {
	sizes := c.sizes()
	across := scale{from: float64(sizes[0]), to: float64(sizes[len(sizes)-1]), start: left, end: width - right, log: true}
	up := c.figures()
	fmt.Fprintf(b, `<text x="%d" y="18" font-size="13" font-weight="bold">%s</text>`+"\n", left, html.EscapeString(c.Title))
	for _, tick := range up.ticks() {
		y := up.at(tick)
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y, width-right, left-6, y+4, number(tick))
	}
	for _, size := range sizes {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", across.at(float64(size)), height-bottom+16, thousands(size))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-bottom+32, html.EscapeString(c.Size))
	palette := strings.Fields(colours)
	x := left
	for i, s := range c.Series {
		colour := palette[i%len(palette)]
		var way []string
		for _, size := range sizes {
			if figure, ok := s.figure(size); ok {
				px, py := across.at(float64(size)), up.at(figure)
				way = append(way, fmt.Sprintf("%.1f %.1f", px, py))
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s: %s</title></circle>`+"\n",
					px, py, colour, html.EscapeString(s.Name), thousands(size), number(figure))
			}
		}
		if len(way) > 0 {
			fmt.Fprintf(b, `<path d="M%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(way, " L"), colour)
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", x, height-10, colour, html.EscapeString(s.Name))
		x += 14 + 6*len(s.Name) // about what the name takes
	}
}

// figures is the scale of the figures, from the bottom up.
func (c Chart) figures() scale {
	s := scale{from: math.Inf(1), to: 0, start: height - bottom, end: top, log: c.Log}
	for _, series := range c.Series {
		for _, p := range series.Points {
			s.from, s.to = min(s.from, p.Figure), max(s.to, p.Figure)
		}
	}
	switch {
	case c.Log:
		s.from, s.to = math.Pow(10, math.Floor(math.Log10(s.from))), math.Pow(10, math.Ceil(math.Log10(s.to)))
	case s.to == 0:
		s.from, s.to = 0, 1
	default:
		step := round(s.to / mostTicks)
		s.from, s.to = 0, math.Ceil(s.to/step)*step
	}
	return s
}

// scale maps values to places on an axis.
type scale struct {
	from, to   float64
	start, end float64
	log        bool
}

func (s scale) at(value float64) float64 {
	from, to := s.from, s.to
	if s.log {
		from, to, value = math.Log10(from), math.Log10(to), math.Log10(value)
	}
	if from == to {
		return (s.start + s.end) / 2
	}
	return s.start + (value-from)/(to-from)*(s.end-s.start)
}

// ticks are the values at which the axis has a line.
func (s scale) ticks() []float64 {
	var ticks []float64
	if s.log {
		for tick := s.from; tick <= s.to*1.001; tick *= 10 { // not quite exact
			ticks = append(ticks, tick)
		}
		return ticks
	}
	step := round(s.to / mostTicks)
	for i := 0; float64(i)*step <= s.to*1.001; i++ {
		ticks = append(ticks, float64(i)*step)
	}
	return ticks
}

// round is the next larger of the numbers 1, 2 and 5 times a power of ten.
func round(n float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, of := range []float64{1, 2, 5} {
		if n <= of*power*1.0001 {
			return of * power
		}
	}
	return 10 * power
}
