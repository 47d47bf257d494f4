package providers

import "time"

// Report tells how the attempt at a target ended; nil is success. The fault's Blame says against what it speaks.
//
// A fault of the channel speaks against the one model, or, where no connection came about, against the channel. A key that
// the vendor refuses, that is out of money, or that is to be left alone for a time the vendor names, rests at once; one that
// is merely busy, or may not use the model, is left alone for that model by the evidence. Of a canceled call only its turn
// ends. Targets of channels that are gone are ignored.
func (r *Router) Report(to Target, fault *Fault) {
	now := r.now()
	if !r.find(&to, now) {
		return
	}
	r.count(to, now, fault)
	channel := to.channel
	switch {
	case fault == nil:
		r.succeeded(to, now)
		return
	case fault.Blame == BlameChannel:
		trouble := newTrouble(fault, to.Key)
		channel.trouble.Store(trouble)
		if to.spoken {
			break
		}
		if fault.Unreached {
			r.stop(to, &channel.whole, Rest{Circuit: true}, now, fault, trouble)
			break
		}
		r.stop(to, channel.circuits.begin(to.Model, now, to.token), Rest{Circuit: true, Model: to.Model}, now, fault, trouble)
		if _, open := channel.whole.openSince(now); !open && channel.spans(now) {
			channel.whole.learn(now, r.rules.cooldown, stopped)
			r.began(to, Rest{Circuit: true}, r.rules.cooldown, stopped, trouble)
		}
	case fault.Blame == BlameKey && to.key != nil:
		r.refused(to, now, fault)
	}
	// What does not speak against the two ends a turn there.
	channel.whole.leave(now, to.token, to.picked)
	channel.circuits.of(to.Model).leave(now, to.token, to.picked)
}

// Looked tells how a look at a job under way ended. That says whether the channel is there and the key is good, and nothing
// of how it takes new work.
func (r *Router) Looked(to Target, fault *Fault) {
	now := r.now()
	if !r.find(&to, now) {
		return
	}
	r.count(to, now, fault)
	switch {
	case fault == nil:
		if to.channel.whole.succeeded(now, to.token, to.picked, &r.rules) {
			r.ended(to, Rest{Circuit: true})
		}
	case fault.Blame == BlameChannel:
		trouble := newTrouble(fault, to.Key)
		to.channel.trouble.Store(trouble)
		if fault.Unreached {
			r.stop(to, &to.channel.whole, Rest{Circuit: true}, now, fault, trouble)
		}
	case fault.Blame == BlameKey && to.key != nil && !fault.spares():
		r.refused(to, now, fault)
	}
}

// find completes a target that was made by hand; false where its channel is gone.
func (r *Router) find(to *Target, now time.Duration) bool {
	if to.channel != nil {
		return true
	}
	channel := r.table.Load().channels[to.Channel.Name]
	if channel == nil || !channel.same(to.Channel) {
		return false
	}
	if to.channel = channel.health; to.picked == 0 {
		to.picked = now
	}
	if key := channel.key(to.Key); key != nil {
		to.key = key.health
	}
	return true
}

// count puts the attempt into the figures of the last minute.
func (r *Router) count(to Target, now time.Duration, fault *Fault) {
	if fault != nil && fault.Kind == Canceled {
		return
	}
	failed := fault != nil && fault.Blame != BlameNone
	to.channel.pace.count(now, failed)
	if to.key != nil {
		to.key.pace.count(now, failed)
	}
}

// evidence is what the fault of a call says.
func (t Target) evidence(fault *Fault) evidence {
	e := evidence{token: t.token, picked: t.picked, weak: fault.Blame == BlameChannel && fault.weak(), retryAfter: fault.RetryAfter}
	if fault.Blame == BlameKey && fault.Kind == RateLimited {
		e.enough = 1 // a token that is told to slow down does so at once
	}
	return e
}

// stop counts a fault against a circuit, and tells others when that opens it for all.
func (r *Router) stop(to Target, of *circuit, what Rest, now time.Duration, fault *Fault, trouble *Trouble) {
	if left, level := of.failed(now, to.evidence(fault), &r.rules); level > fit {
		r.began(to, what, left, level, trouble)
	}
}

// refused leaves a key alone, or a model of it.
func (r *Router) refused(to Target, now time.Duration, fault *Fault) {
	trouble := newTrouble(fault, to.Key)
	to.key.trouble.Store(trouble)
	what := Rest{Key: to.Key.Fingerprint()}
	if fault.spares() {
		if to.spoken && fault.Key == KeyForbidden {
			return
		}
		what.Circuit, what.Model = true, to.Model
		r.stop(to, to.key.circuits.begin(to.Model, now, to.token), what, now, fault, trouble)
		return
	}
	rest := &to.key.rest
	if fault.ofModel() && to.Model != "" {
		what.Model, rest = to.Model, to.key.rests.begin(to.Model, now)
	}
	if left, news := rest.failed(now, to.picked, r.rules.cooldown, fault); news {
		what.Length = rest.measure()
		r.began(to, what, left, resting, trouble)
	}
}

// succeeded ends what an answer proves wrong.
func (r *Router) succeeded(to Target, now time.Duration) {
	channel := to.channel
	if channel.circuits.known.Load() != nil {
		channel.answered.Store(int64(to.picked))
	}
	if channel.whole.succeeded(now, to.token, to.picked, &r.rules) {
		r.ended(to, Rest{Circuit: true})
	}
	if channel.circuits.of(to.Model).succeeded(now, to.token, to.picked, &r.rules) {
		r.ended(to, Rest{Circuit: true, Model: to.Model})
	}
	if to.key == nil {
		return
	}
	if to.key.rest.succeeded(to.picked) {
		r.ended(to, Rest{Key: to.Key.Fingerprint()})
	}
	if rest := to.key.rests.of(to.Model); rest != nil && rest.succeeded(to.picked) {
		r.ended(to, Rest{Key: to.Key.Fingerprint(), Model: to.Model})
	}
	if to.key.circuits.of(to.Model).succeeded(now, to.token, to.picked, &r.rules) {
		r.ended(to, Rest{Circuit: true, Key: to.Key.Fingerprint(), Model: to.Model})
	}
}

// began and ended tell others of a cooldown.
func (r *Router) began(to Target, what Rest, left time.Duration, level standing, trouble *Trouble) {
	if r.tell == nil {
		return
	}
	what.Channel, what.Upstream, what.Left, what.Trouble = to.Channel.Name, to.Channel.upstream(), left, trouble
	what.Slow, what.Asked = level == later, level == resting
	r.tell(what)
}

func (r *Router) ended(to Target, what Rest) {
	if r.tell == nil {
		return
	}
	what.Channel, what.Upstream = to.Channel.Name, to.Channel.upstream()
	r.tell(what)
}
