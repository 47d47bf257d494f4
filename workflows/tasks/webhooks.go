package tasks

import (
	"modelrelay/activities"
	"modelrelay/providers"
)

func (in Create) webhookField() string {
	if in.Call != nil {
		return "X-Webhook-Url"
	}
	return "webhook_url"
}

func (c *creation) checkWebhook() error {
	address := c.in.Request.WebhookURL
	if address == "" {
		return nil
	}
	if err := activities.CheckReceiver(address, c.opts.PrivateWebhooks); err != nil {
		return providers.InvalidField(c.in.webhookField(), "Invalid request: '%s' %v.", c.in.webhookField(), err)
	}
	if !c.in.TokenSigns {
		return providers.InvalidField(c.in.webhookField(), "Invalid request: '%s' requires a token with a webhook secret.", c.in.webhookField())
	}
	return nil
}
