package storage_test

import (
	"strings"
	"testing"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

// TestPrefixWithCredentials: a user of the access list with rights to the keys of a prefix only, in a numbered database.
func TestPrefixWithCredentials(t *testing.T) {
	t.Parallel()
	server := storagetest.StartProcess(t, "user gateway on >right-password ~shop:* &shop:* +@all -@admin -@dangerous", "user default off",
		`save ""`)
	open := func(prefix string) error {
		client, err := storage.OpenRedis("redis://"+server.Address+"/3",
			&storage.RedisOptions{Username: "gateway", Password: "right-password", Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return storage.PingRedis(t.Context(), client)
	}
	if err := open("shop:"); err != nil {
		t.Errorf("with its own prefix: %v", err)
	}
	if err := open("other:"); err == nil || !strings.Contains(err.Error(), "redis.username") {
		t.Errorf("with another's: %v", err)
	}
}
