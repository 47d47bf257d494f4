package api_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/api/operator"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// cashier is a real store whose reservations no process settles.
type cashier struct{ *ledger.Budgets }

func (c cashier) Reservations(ctx context.Context, token string) ([]ledger.Reservation, error) {
	list, err := c.Budgets.Reservations(ctx, token)
	for i := range list {
		list[i].Lost = true
	}
	return list, err
}

// TestAdminUnsettled: reservations that no process settles are listed, charged one by one and refunded all together.
func TestAdminUnsettled(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	budgets := ledger.NewBudgets(client, 0)
	o := newAdminEnvOn(t, client, nil)
	made, _, err := o.store.Create(t.Context(), tokens.Token{Name: "anna", Budget: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"video_1", "video_2", "video_3"} {
		claim := ledger.Estimate{ID: id, Token: made.ID, Model: "sora-2", Budget: 100, Amount: int64(i+1) * 1_000_000_000}
		if id == "video_3" {
			claim.Model = "veo-3"
		}
		if err := budgets.Reserve(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	type row struct {
		ID, Token, Model, Why string
		Amount                pricing.Money
		Since                 time.Time
	}
	var list struct {
		Object string
		Data   []row
		Amount pricing.Money
	}
	ids := func() []string {
		var ids []string
		for _, row := range list.Data {
			ids = append(ids, row.ID)
		}
		slices.Sort(ids)
		return ids
	}
	const path = "/admin/usage/unsettled"
	for query, want := range map[string][]string{
		"": {"video_1", "video_2", "video_3"}, "?token=anna": {"video_1", "video_2", "video_3"}, "?model=veo-3": {"video_3"},
		"?token=unknown": nil,
	} {
		if o.tell(t, 200, "GET", path+query, "", &list); !slices.Equal(ids(), want) || list.Object != "list" || list.Data == nil {
			t.Errorf("%s: got %+v, want %v", query, list, want)
		}
	}
	if o.tell(t, 200, "GET", path+"?model=veo-3", "", &list); list.Data[0].Token != made.ID || list.Data[0].Why == "" ||
		list.Data[0].Amount != 3_000_000_000 || list.Amount != 3_000_000_000 || time.Since(list.Data[0].Since) > time.Hour {
		t.Errorf("got %+v", list)
	}
	if o.tell(t, 200, "POST", path+"/video_2/charge", "", &list); !slices.Equal(ids(), []string{"video_2"}) || list.Amount != 2_000_000_000 {
		t.Errorf("charged %+v", list)
	}
	for _, again := range []string{"/video_2/charge", "/video_2/refund", "/video_9/refund", "/video_3/charge?model=sora-2"} {
		if rec := o.ask(t, "POST", path+again, ""); rec.Code != 404 || !strings.Contains(rec.Body.String(), "There is no unsettled reservation") {
			t.Errorf("%s: got %d %s", again, rec.Code, rec.Body)
		}
	}
	type holder struct{ Spent, Reserved *pricing.Money }
	var one holder
	if o.tell(t, 200, "GET", "/admin/tokens/anna", "", &one); one.Spent == nil || *one.Spent != 2_000_000_000 || one.Reserved == nil ||
		*one.Reserved != 4_000_000_000 {
		t.Errorf("after the charge: %+v", one)
	}
	if o.tell(t, 200, "POST", path+"/all/refund?token=anna", "", &list); !slices.Equal(ids(), []string{"video_1", "video_3"}) ||
		list.Amount != 4_000_000_000 {
		t.Errorf("refunded %+v", list)
	}
	if o.tell(t, 200, "POST", path+"/all/refund", "", &list); len(list.Data) != 0 || list.Amount != 0 {
		t.Errorf("nothing is left: %+v", list)
	}
	if balance, err := budgets.Balance(t.Context(), made.ID); err != nil || balance != (ledger.Balance{Spent: 2_000_000_000}) {
		t.Errorf("at the end: %+v, %v", balance, err)
	}
	if _, _, err := o.store.Create(t.Context(), tokens.Token{Name: "berta"}); err != nil {
		t.Fatal(err)
	}
	var all struct{ Data []holder }
	if o.tell(t, 200, "GET", "/admin/tokens", "", &all); len(all.Data) != 2 || all.Data[0].Spent == nil ||
		*all.Data[0].Spent != 2_000_000_000 ||
		*all.Data[0].Reserved != 0 || all.Data[1].Spent != nil || all.Data[1].Reserved != nil {
		t.Errorf("tokens: %+v", all)
	}
	var usage struct{ Data []operator.UsageRow }
	if o.tell(t, 200, "GET", "/admin/usage?group_by=token", "", &usage); len(usage.Data) != 1 || usage.Data[0].Cost != 2_000_000_000 ||
		usage.Data[0].Failed != 1 {
		t.Errorf("ledger %+v", usage.Data)
	}
	if !strings.Contains(o.log.String(), `"subject":"video_2"`) {
		t.Errorf("the log does not say what was charged: %s", o.log.String())
	}
}
