package slots

// takeScript gives a task a slot in the first channel with a free slot for it, or a place in the line of each in one step.
//
// Order within a channel: the lanes in order; within a lane start-time fair queueing over the tokens; within a token the task that
// waits longest. A token's turn "<start> <cost> <waiting>" is the virtual time at which its first waiter may start, what one start adds
// to it (turnUnit divided by weight, so that shares follow weights), and the number of its waiters. A new token starts at the lane's
// virtual time, that of the earliest turn at the last grant: unused time is not saved up. The start of a waiter is computed at each
// request, so a waiter that leaves shifts those after it. Virtual times are whole numbers, so the order is total.
//
// Waiters poll. A free slot is reserved for waiters before the caller that are about to ask; one that sleeps longer or is late is skipped.
//
//	KEYS   of each channel: slots, line, due, gone, turns; first the candidates, then those to leave
//	ARGV   1: task, 2: "<lane>:<token>", 3: cost, 4: the waiter's name in lines, 5: lifetime of a slot in ms, 6: "1": wait,
//	       7: number of candidates, 8: wait by place in line, 9: least wait, 10: longest wait, in ms,
//	       11: askSoon, 12: askLate, 13: silence, 14: lifetime of keys, in ms, from 15: slots of each candidate
//	answer {candidate that gave a slot or 0, place in line or 0, candidate of that place or 0, ms until the next ask}
const takeScript = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local task, owner, cost, name = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local ttl, candidates, keep = tonumber(ARGV[5]), tonumber(ARGV[7]), ARGV[14]

local function number(n) return string.format('%.0f', n) end
local function keys(i) return unpack(KEYS, 5 * i - 4, 5 * i) end
local function owner_of(waiter) return string.match(waiter, '^%d:[^:]*') end

-- earlier counts the waiters of the same token before a waiter.
local function earlier(line, waiter)
	return redis.call('ZLEXCOUNT', line, '[' .. owner_of(waiter) .. ':', '(' .. waiter)
end

local function keep_turn(turns, of, turn)
	redis.call('HSET', turns, of, number(turn.start) .. ' ' .. number(turn.cost) .. ' ' .. number(turn.waiting))
end

local function read_turn(text)
	local start, cost, waiting = string.match(text or '', '^(%d+) (%d+) (%d+)$')
	return start and {start = tonumber(start), cost = tonumber(cost), waiting = tonumber(waiting)}
end

local function leave(i, waiter)
	local slots, line, due, gone, turns = keys(i)
	if redis.call('ZREM', line, waiter) == 0 then return end
	redis.call('ZREM', due, waiter)
	redis.call('ZREM', gone, waiter)
	if redis.call('EXISTS', line) == 0 then
		redis.call('DEL', turns) -- without waiters, all tokens start again
		return
	end
	local of = owner_of(waiter)
	local turn = read_turn(redis.call('HGET', turns, of) or nil)
	if turn then
		turn.waiting = turn.waiting - 1
		keep_turn(turns, of, turn)
	end
end

for i = candidates + 1, #KEYS / 5 do
	redis.call('ZREM', KEYS[5 * i - 4], task)
	leave(i, name)
end

for i = 1, candidates do
	local slots = keys(i)
	local ends = redis.call('ZSCORE', slots, task)
	if ends and tonumber(ends) > now then -- the answer to an earlier ask was lost
		redis.call('ZADD', slots, now + ttl, task)
		for j = 1, candidates do leave(j, name) end
		return {i, 0, 0, 0}
	end
end

-- read_line reads the waiters for a channel, including the caller.
local function read_line(i)
	local slots, line, due, gone, turns = keys(i)
	redis.call('ZREMRANGEBYSCORE', slots, '-inf', now)
	for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', gone, '-inf', now, 'LIMIT', 0, 100)) do
		if waiter ~= name then leave(i, waiter) end
	end
	local at = {turns = {}, times = {}, before = 0}
	local all = redis.call('HGETALL', turns)
	for j = 1, #all, 2 do
		if string.sub(all[j], 1, 1) == 'v' then
			at.times[string.sub(all[j], 2)] = tonumber(all[j + 1])
		else
			at.turns[all[j]] = read_turn(all[j + 1])
		end
	end
	at.waiting = next(at.turns) ~= nil
	at.lane = string.sub(owner, 1, 1)
	at.time = at.times[at.lane] or 0
	at.mine = at.turns[owner] or {start = 0, waiting = 0}
	if at.mine.waiting == 0 then at.mine.start = math.max(at.mine.start, at.time) end
	at.mine.cost = cost
	at.turns[owner] = at.mine
	at.before = earlier(line, name)
	at.start = at.mine.start + at.before * cost
	return at
end

-- ahead counts the waiters before the caller.
local function ahead(at)
	local count = at.before
	for of, turn in pairs(at.turns) do
		local lane = string.sub(of, 1, 1)
		if lane < at.lane then
			count = count + turn.waiting
		elseif lane == at.lane and of ~= owner and turn.waiting > 0 and turn.start <= at.start then
			local gap = at.start - turn.start
			local first = math.ceil(gap / turn.cost)
			if gap % turn.cost == 0 and of < owner then first = first + 1 end
			count = count + math.min(first, turn.waiting)
		end
	end
	return count
end

-- expected counts, up to enough, the waiters before the caller that are about to ask.
local function expected(i, at, enough)
	local slots, line, due = keys(i)
	local count = 0
	for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', due, now - tonumber(ARGV[12]), now + tonumber(ARGV[11]))) do
		local of = owner_of(waiter)
		local turn, lane = at.turns[of], string.sub(of, 1, 1)
		if waiter ~= name and turn and lane <= at.lane then
			local before = lane < at.lane
			if of == owner then
				before = earlier(line, waiter) < at.before
			elseif not before then
				local start = turn.start + earlier(line, waiter) * turn.cost
				before = start < at.start or start == at.start and of < owner
			end
			if before then
				count = count + 1
				if count >= enough then break end
			end
		end
	end
	return count
end

-- charge advances the token's turn, and the lane's time if the earliest turn is later now.
local function charge(i, at)
	local slots, line, due, gone, turns = keys(i)
	local first = at.mine.start
	for of, turn in pairs(at.turns) do
		if turn.waiting > 0 and string.sub(of, 1, 1) == at.lane then first = math.min(first, turn.start) end
	end
	first = math.max(first, at.time)
	redis.call('HSET', turns, 'v' .. at.lane, number(first))
	at.mine.start = at.mine.start + cost
	keep_turn(turns, owner, at.mine)
	for of, turn in pairs(at.turns) do
		if of ~= owner and turn.waiting == 0 and turn.start <= first and string.sub(of, 1, 1) == at.lane then
			redis.call('HDEL', turns, of)
		end
	end
end

local reads, place, place_at = {}, 0, 0
for i = 1, candidates do
	local slots = keys(i)
	local at = read_line(i)
	reads[i] = at
	local room = tonumber(ARGV[14 + i]) - redis.call('ZCARD', slots)
	local before = ahead(at)
	if room > 0 and (before < room or expected(i, at, room) < room) then
		redis.call('ZADD', slots, now + ttl, task)
		redis.call('PEXPIRE', slots, keep)
		if at.waiting then charge(i, at) end
		for j = 1, candidates do leave(j, name) end
		return {i, 0, 0, 0}
	end
	if place == 0 or before + 1 < place then place, place_at = before + 1, i end
end
if ARGV[6] ~= '1' or candidates == 0 then return {0, place, place_at, 0} end

local most = tonumber(ARGV[10])
local delay = math.max(place * tonumber(ARGV[8]), tonumber(ARGV[9]))
if delay > most then delay = most - place * 7919 % math.floor(most / 4) end -- spread the asks
for i = 1, candidates do
	local slots, line, due, gone, turns = keys(i)
	local mine = reads[i].mine
	if redis.call('ZADD', line, 0, name) == 1 then mine.waiting = mine.waiting + 1 end
	keep_turn(turns, owner, mine)
	redis.call('ZADD', due, now + delay, name)
	redis.call('ZADD', gone, now + 3 * delay + tonumber(ARGV[13]), name)
	for _, key in ipairs({line, due, gone, turns}) do redis.call('PEXPIRE', key, keep) end
end
return {0, place, place_at, delay}
`

// renewScript extends a task's slot. It takes a lost one again whatever the limit, because the job runs.
//
//	KEYS   1: slots
//	ARGV   1: task, 2: lifetime of the slot in ms, 3: lifetime of the key in ms
//	answer 1 if the slot was lost
const renewScript = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ends and tonumber(ends) > now then return 0 end
return 1
`
