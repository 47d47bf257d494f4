package limits

import "modelrelay/storage/ledger"

// windowSeconds is the number of one-second buckets in a window: sixty complete ones and the current one, so the limit always holds.
const windowSeconds = 61

// admitScript settles and admits for several tokens in one step, by the server's clock.
//
// A window is a hash: s the second it was last written, rt and tt the sums of requests and tokens, r<n> and t<n> the buckets of the second
// whose remainder by 61 is n. Leases are a sorted set of call -> expiry in ms. A refusal writes nothing. The batches of a process are
// numbered. One whose answer was lost is sent again under its number and gets the same answer. One that reaches Redis after a later one
// does nothing.
//
// A budget is a hash: spent, reserved, and c<lease> for each reservation: "<amount> <since, ms> <model>". The sum reserved is always that
// of the reservations. A call without a cost, such as one that creates a task with its own reservation, reserves nothing: if its process
// died, the reservation could not be settled.
//
//	KEYS   1: the process's sign of life, 2: "<number of its last batch> <answer>", 3: tokens with budgets; then
//	       for each token: window, leases, and with a budget that
//	ARGV   1: JSON, for each token [rpm, tpm, concurrency, budget, [lease to release, …], [lease to renew, …],
//	       [second admitted, tokens to add, …], [requests, tokens, lease or "", …],
//	       [lease, cost or -1 for none, …], and with a budget [amount, model, …] for the calls]
//	       2: lease time in ms
//	       3: the batch's number, 4: lifetime of its answer, in ms
//	answer for each token a line "<codes> <requests used> <tokens used> <reset ms> <retry ms, requests>
//	       <retry ms, tokens> <second> <money used>"; one code per call: 0 admitted, 1 too many requests, 2 too many
//	       tokens, 3 too many at once, 4 over budget
const admitScript = ledger.BudgetFunctions + `
local last = redis.call('GET', KEYS[2])
if last then
	local number, answer = string.match(last, '^(%d+) (.*)$')
	if tonumber(number) == tonumber(ARGV[3]) then return answer end
	if tonumber(number) > tonumber(ARGV[3]) then return '' end
end
local time = redis.call('TIME')
local second = tonumber(time[1])
local ms = second * 1000 + math.floor(tonumber(time[2]) / 1000)
local lease_ms = tonumber(ARGV[2])
local lines = {}
local k, reserving = 3, false

for g, group in ipairs(cjson.decode(ARGV[1])) do
	local rpm, tpm, concurrency, budget, release, renew, corrections, calls, costs, amounts = unpack(group)
	local window, leases, money = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
	k = k + 2
	if budget > 0 then k = k + 1 end
	local now = second
	local s, rt, tt, r, t = now, 0, 0, 0, 0
	local found, dirty, expired = false, false, {}

	for _, lease in ipairs(renew) do redis.call('ZADD', leases, ms + lease_ms, lease) end
	if #renew > 0 then redis.call('PEXPIRE', leases, lease_ms) end
	if #release > 0 then redis.call('ZREM', leases, unpack(release)) end -- after the renewals: a renewed call may have ended

	if (rpm > 0 or tpm > 0) and (#calls > 0 or #corrections > 0) then
		local slot = now % 61
		local state = redis.call('HMGET', window, 's', 'rt', 'tt', 'r' .. slot, 't' .. slot)
		if state[1] then
			found = true
			s, rt, tt = tonumber(state[1]), tonumber(state[2]), tonumber(state[3])
			if s > now then -- the clock went back
				now = s
				slot = now % 61
				state = redis.call('HMGET', window, 's', 'rt', 'tt', 'r' .. slot, 't' .. slot)
			end
			if s == now then
				r, t = tonumber(state[4] or 0), tonumber(state[5] or 0)
			elseif now - s >= 61 then
				redis.call('DEL', window)
				found, rt, tt = false, 0, 0
			else
				for j = s + 1, now do
					expired[#expired + 1] = 'r' .. j % 61
					expired[#expired + 1] = 't' .. j % 61
				end
				local old = redis.call('HMGET', window, unpack(expired))
				for j = 1, #old, 2 do
					rt = rt - tonumber(old[j] or 0)
					tt = tt - tonumber(old[j + 1] or 0)
				end
			end
		end

		for i = 1, #corrections, 2 do
			local at, tokens = corrections[i], corrections[i + 1]
			if at >= now or (at <= now - 61 and tokens > 0) then
				tokens = math.max(tokens, -t)
				t, tt, dirty = t + tokens, tt + tokens, true
			elseif at > now - 61 and at <= s and found then
				local bucket = 't' .. at % 61
				tokens = math.max(tokens, -tonumber(redis.call('HGET', window, bucket) or 0))
				redis.call('HINCRBY', window, bucket, tokens)
				tt, dirty = tt + tokens, true
			elseif tokens > 0 then
				t, tt, dirty = t + tokens, tt + tokens, true
			end
		end
	end

	local used, known = 0, true
	if budget > 0 then
		for i = 1, #costs, 2 do amend(money, 'c' .. costs[i], costs[i + 1]) end
		if #calls > 0 then
			local sums = redis.call('HMGET', money, 'spent', 'reserved')
			used, known = tonumber(sums[1] or 0) + tonumber(sums[2] or 0), sums[2]
		end
	end

	local running = 0
	if concurrency > 0 and #calls > 0 then
		redis.call('ZREMRANGEBYSCORE', leases, '-inf', ms)
		running = redis.call('ZCARD', leases)
	end

	local codes, taken = {}, {}
	local over_r, over_t
	for i = 1, #calls, 3 do
		local requests, tokens = calls[i], calls[i + 1]
		local code = 0
		if rpm > 0 and rt + requests > rpm then
			code = 1
			over_r = over_r or requests
		elseif tpm > 0 and tt + math.max(tokens, 1) > tpm then
			code = 2
			over_t = over_t or math.max(tokens, 1)
		elseif concurrency > 0 and running >= concurrency then
			code = 3
		elseif budget > 0 and used + amounts[(i - 1) / 3 * 2 + 1] > budget then
			code = 4
		else
			if rpm > 0 then r, rt, dirty = r + requests, rt + requests, true end
			if tpm > 0 then t, tt, dirty = t + tokens, tt + tokens, true end
			if concurrency > 0 then
				running = running + 1
				taken[#taken + 1] = ms + lease_ms
				taken[#taken + 1] = calls[i + 2]
			end
		end
		if budget > 0 and code == 0 then
			local field, amount = 'c' .. calls[i + 2], amounts[(i - 1) / 3 * 2 + 1]
			if amount > 0 and reserve(money, field, amount, ms, amounts[(i - 1) / 3 * 2 + 2]) then
				used, reserving = used + amount, true
				if not known then
					redis.call('SADD', KEYS[3], (token_of(money)))
					known = true
				end
			end
		end
		codes[#codes + 1] = code
	end
	if #taken > 0 then
		redis.call('ZADD', leases, unpack(taken))
		redis.call('PEXPIRE', leases, lease_ms)
	end

	local retry_r, retry_t = 0, 0
	if over_r or over_t then
		local buckets = {}
		if found then
			local all = redis.call('HGETALL', window)
			for i = 1, #all, 2 do buckets[all[i]] = tonumber(all[i + 1]) end
		end
		local function retry(kind, missing)
			for j = now - 60, now - 1 do
				if j <= s then
					missing = missing - (buckets[kind .. j % 61] or 0)
					if missing <= 0 then return (j + 61) * 1000 - ms end
				end
			end
			return (now + 61) * 1000 - ms
		end
		if over_r then retry_r = retry('r', rt + over_r - rpm) end
		if over_t then retry_t = retry('t', tt + over_t - tpm) end
	end

	if dirty then
		if #expired > 0 then redis.call('HDEL', window, unpack(expired)) end
		local slot = now % 61
		redis.call('HSET', window, 's', now, 'rt', rt, 'tt', tt, 'r' .. slot, r, 't' .. slot, t)
		if not found or s ~= now then redis.call('EXPIRE', window, 62) end
		s = now
	end
	local reset = 0
	if rt > 0 or tt > 0 then reset = (s + 61) * 1000 - ms end
	lines[g] = string.format('%s %d %d %d %d %d %d %.0f', table.concat(codes), rt, tt, reset, retry_r, retry_t, now, used)
end
if reserving then redis.call('SET', KEYS[1], 1, 'PX', lease_ms) end
local answer = table.concat(lines, '\n')
redis.call('SET', KEYS[2], ARGV[3] .. ' ' .. answer, 'PX', ARGV[4])
return answer
`
