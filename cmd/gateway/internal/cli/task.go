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

func printDetails(p *Program, s tasks.Details) error {
	failure := s.Failure
	if s.Code != "" {
		failure += " (" + s.Code + ")"
	}
	charge := ""
	if s.Charge != nil {
		charge = s.Charge.String()
	}
	state := fmt.Sprintf("%s %d%%, %s", s.State, s.Progress, s.Phase)
	call := s.Call
	if call == nil {
		call = new(tasks.CallDetails)
	} else {
		state = strings.TrimSpace(string(s.State) + " " + string(call.Stage))
	}
	used := ""
	if call.Usage != (tasks.CallUsage{}) {
		used = fmt.Sprintf("%d in, %d out", call.Usage.InputTokens, call.Usage.OutputTokens)
	}
	head := fields{
		{"id", s.ID},
		{"operation", s.Operation},
		{"state", state},
		{"model", s.Model},
		{"token", s.Token},
		{"channel", strings.TrimSpace(s.Channel + " " + s.Vendor)},
		{"attempts", count(call.Attempts)},
		{"lost answers", count(call.Lost)},
		{"status code", count(call.StatusCode)},
		{"events", count(int(call.Events))},
		{"tokens", used},
		{"created", moment(s.Created)},
		{"begun", moment(call.StartedAt)},
		{"ended", moment(s.Closed)},
		{"expires", moment(s.Expires)},
		{"charge", charge},
		{"vendor price", s.VendorPrice},
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
		{"attempts", []string{"#", "AT", "CHANNEL", "VENDOR", "JOB", "FAULT"}, rowsOf(s.Attempts, attemptRow)},
		{"waiting for", []string{"STEP", "STATE", "TRY", "NEXT", "FAULT", "HEARTBEAT"}, rowsOf(s.Waiting, waitingRow)},
		{"steps", []string{"STEP", "AT", "TOOK", "TRIES", "SUMMARY", "FAULT"}, rowsOf(s.Steps, stepRow)},
		{"outputs", []string{"OBJECT", "BYTES", "SHA-256"}, rowsOf(s.Outputs, outputRow)},
		{"webhooks", []string{"ID", "STATE", "STATUS", "RESULT"}, rowsOf(s.Webhooks, deliveryRow)},
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

func attemptRow(a tasks.AttemptDetails) []string {
	fault := ""
	if a.Fault != nil {
		fault = string(a.Fault.Kind) + ": " + a.Fault.Message
		if a.Fault.Status > 0 {
			fault += fmt.Sprintf(" (HTTP %d)", a.Fault.Status)
		}
	}
	return []string{strconv.Itoa(a.Number), moment(a.At), a.Assignment.Channel, a.Assignment.Vendor, a.Job, fault}
}

func waitingRow(w tasks.Waiting) []string {
	return []string{w.Name, w.State, strconv.Itoa(int(w.Tries)), moment(w.Next), w.Fault, line(w.Heartbeat)}
}

func stepRow(s tasks.Step) []string {
	took := ""
	if !s.Ended.IsZero() {
		took = s.Ended.Sub(s.At).Round(time.Millisecond).String()
	}
	return []string{s.Name, moment(s.At), took, strconv.Itoa(int(s.Tries)), s.Summary, s.Fault}
}

func outputRow(o activities.Output) []string {
	return []string{o.Object, strconv.FormatInt(o.Size, 10), o.SHA256}
}

func deliveryRow(d tasks.Delivery) []string { return []string{d.ID, d.State, d.Status, line(d.Result)} }

// lineMost bounds a document in a table, in bytes; --json has the whole.
const lineMost = 200

func line(doc json.RawMessage) string {
	text := strings.Join(strings.Fields(string(doc)), " ")
	if len(text) > lineMost {
		return strings.ToValidUTF8(text[:lineMost], "") + "…"
	}
	return text
}
