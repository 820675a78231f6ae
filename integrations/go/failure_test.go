package offshoot

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// Run by tests/testbed/tests/clients.rs against a real engine with a dSource `shop`.
func TestAJobThatFailsIsAnError(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	engine, err := Connect(os.Getenv("OFFSHOOT_SERVER"), os.Getenv("OFFSHOOT_FINGERPRINT"), os.Getenv("OFFSHOOT_TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	from, sql := "shop", "SELECT 1 / 0"
	hooks := []NewHook{{Event: HookEventAfterProvision, Sql: &sql}}
	var latest Moment
	if err := latest.FromMoment0(Moment0{Kind: Moment0KindLatest}); err != nil {
		t.Fatal(err)
	}
	asked, err := engine.ProvisionVdbWithResponse(ctx, ProvisionVdb{Name: "broken", From: &from, Moment: &latest, Hooks: &hooks})
	if err != nil {
		t.Fatal(err)
	}
	var failure *Failure
	if err := Wait(ctx, engine, asked.JSON202.Job); !errors.As(err, &failure) || failure.Code != "invalid_input" {
		t.Errorf("the job: %v", err)
	}
	ended, err := engine.DeleteVdbWithResponse(ctx, "broken")
	if err != nil {
		t.Fatal(err)
	}
	if err := Wait(ctx, engine, ended.JSON202.Job); err != nil {
		t.Error(err)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	if err := Wait(gone, engine, ended.JSON202.Job); err == nil {
		t.Error("nobody waits any more")
	}
}
