package operator

import (
	"cmp"
	"context"
	"net/url"

	"modelrelay/api/body"
	"modelrelay/storage/audit"
)

// Auditor records and reads the audit log; audit.Log implements it.
type Auditor interface {
	Record(ctx context.Context, entry audit.Entry)
	Page(ctx context.Context, filter audit.Filter, cursor string, limit int) (found []audit.Entry, next string, err error)
}

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	By      string `query:"by" json:"by,omitempty" enum:"operator,token,cli,file,nobody" default:"" placeholder:"WORD" doc:"Only changes by this kind of actor"`
	Who     string `query:"who" json:"who,omitempty" placeholder:"NAME" doc:"Only changes by this operator name or token id"`
	What    string `query:"what" json:"what,omitempty" placeholder:"WORD" doc:"Only changes by this operation, such as create_token"`
	Subject string `query:"subject" json:"subject,omitempty" placeholder:"ID" doc:"Only changes of the object with this id or name"`
	Outcome string `query:"outcome" json:"outcome,omitempty" enum:"done,refused" default:"" placeholder:"WORD" doc:"Only changes with this outcome"`
	Since   string `query:"since" json:"since,omitempty" type:"past" placeholder:"WHEN" doc:"Only changes since this date or RFC 3339 time"`
	Until   string `query:"until" json:"until,omitempty" type:"past" placeholder:"WHEN" doc:"Only changes before this date or RFC 3339 time"`
	PageOf  `kong:"-"`
}

// AuditList is a page of the audit log.
type AuditList struct {
	Object string        `json:"object" enum:"list"`
	Data   []audit.Entry `json:"data" nullable:"false"`
	After  *string       `json:"after" doc:"Value of after for the next page; null at the end"`
}

// ListAudit returns a page of the audit log, the newest entries first.
func (s *Service) ListAudit(ctx context.Context, by Actor, in *AuditQuery) (AuditList, error) {
	return s.readAudit(ctx, by, in, in.limit())
}

// TableAudit is ListAudit for a table: without a limit it returns all stored entries.
func (s *Service) TableAudit(ctx context.Context, by Actor, in *AuditQuery) (AuditList, error) {
	return s.readAudit(ctx, by, in, cmp.Or(in.Limit, audit.Recent))
}

func (s *Service) readAudit(ctx context.Context, by Actor, in *AuditQuery, limit int) (AuditList, error) {
	filter := audit.Filter{By: in.By, Who: in.Who, What: in.What, Subject: in.Subject, Outcome: in.Outcome}
	err := reads(by, in)
	if err == nil {
		filter.Since, filter.Until, err = span(in.Since, in.Until)
	}
	if err == nil && !audit.IsCursor(in.After) {
		err = noCursor()
	}
	if err != nil {
		return AuditList{}, err
	}
	found, next, err := s.Audit.Page(ctx, filter, in.After, limit)
	return AuditList{Object: "list", Data: orNone(found), After: body.OrNull(next)}, StoreFault("entry", "", err)
}

// receiverHost returns the scheme and host of a webhook's address, "" for none. Its other parts may be secret.
func receiverHost(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host}).String()
}
