package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"modelrelay/activities"
	"modelrelay/workflows/tasks"
)

// printStory tells a task's story for people.
func printStory(p *Program, s tasks.Story) error {
	failure := s.Failure
	if s.Code != "" {
		failure += " (" + s.Code + ")"
	}
	head := fields{
		{"id", s.ID},
		{"state", fmt.Sprintf("%s %d%%, %s", s.State, s.Progress, s.Phase)},
		{"model", s.Model},
		{"token", s.Token},
		{"channel", strings.TrimSpace(s.Channel + " " + s.Vendor)},
		{"created", moment(s.Created)},
		{"ended", moment(s.Closed)},
		{"expires", moment(s.Expires)},
		{"due", moment(s.Due)},
		{"error", failure},
		{"temporal", s.Path},
	}
	if err := printFields(p.Stdout, head); err != nil {
		return err
	}
	sections := []struct {
		name string
		head []string
		rows [][]string
	}{
		{"attempts", []string{"#", "AT", "CHANNEL", "VENDOR", "JOB", "FAULT"}, attemptRows(s.Attempts)},
		{"waiting for", []string{"STEP", "STATE", "TRY", "NEXT", "FAULT", "HEARTBEAT"}, waitingRows(s.Waiting)},
		{"steps", []string{"STEP", "AT", "TOOK", "TRIES", "SUMMARY", "FAULT"}, stepRows(s.Steps)},
		{"outputs", []string{"OBJECT", "BYTES", "SHA-256"}, outputRows(s.Outputs)},
		{"webhooks", []string{"ID", "STATE", "STATUS", "RESULT"}, deliveryRows(s.Webhooks)},
	}
	for _, section := range sections {
		if len(section.rows) == 0 {
			continue
		}
		fmt.Fprintf(p.Stdout, "\n%s\n", section.name)
		if err := printTable(p.Stdout, section.head, section.rows); err != nil {
			return err
		}
	}
	return nil
}

func attemptRows(attempts []tasks.AttemptStory) [][]string {
	rows := make([][]string, 0, len(attempts))
	for _, a := range attempts {
		fault := ""
		if a.Fault != nil {
			fault = string(a.Fault.Kind) + ": " + a.Fault.Message
			if a.Fault.Status > 0 {
				fault += fmt.Sprintf(" (HTTP %d)", a.Fault.Status)
			}
		}
		rows = append(rows, []string{strconv.Itoa(a.Number), moment(a.At), a.Assignment.Channel, a.Assignment.Vendor, a.Job, fault})
	}
	return rows
}

func waitingRows(waiting []tasks.Waiting) [][]string {
	rows := make([][]string, 0, len(waiting))
	for _, w := range waiting {
		rows = append(rows, []string{w.Name, w.State, strconv.Itoa(int(w.Tries)), moment(w.Next), w.Fault, line(w.Heartbeat)})
	}
	return rows
}

func stepRows(steps []tasks.Step) [][]string {
	rows := make([][]string, 0, len(steps))
	for _, s := range steps {
		took := ""
		if !s.Ended.IsZero() {
			took = s.Ended.Sub(s.At).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{s.Name, moment(s.At), took, strconv.Itoa(int(s.Tries)), s.Summary, s.Fault})
	}
	return rows
}

func outputRows(outputs []activities.Output) [][]string {
	rows := make([][]string, 0, len(outputs))
	for _, o := range outputs {
		rows = append(rows, []string{o.Object, strconv.FormatInt(o.Size, 10), o.SHA256})
	}
	return rows
}

func deliveryRows(deliveries []tasks.Delivery) [][]string {
	rows := make([][]string, 0, len(deliveries))
	for _, d := range deliveries {
		rows = append(rows, []string{d.ID, d.State, d.Status, line(d.Result)})
	}
	return rows
}

// lineMost bounds a document in a table, in bytes; --json has the whole.
const lineMost = 200

func line(doc json.RawMessage) string {
	text := strings.Join(strings.Fields(string(doc)), " ")
	if len(text) > lineMost {
		return strings.ToValidUTF8(text[:lineMost], "") + "…"
	}
	return text
}
