package ledger

// BudgetFunctions are the Lua functions with which scripts access a budget's hash. Amounts are whole numbers below 2^53, exact in Lua.
//
//	uncharge(key, field)     reverts an operator's charge for a reservation, in the ledger too
//	amend(key, field, cost)  changes a reservation to its cost, -1: none; returns by how much reserved fell, 0 if there is no such
//	                         reservation. The settlement of a reservation that an operator has charged has the true cost: the charge
//	                         is reverted in the same step
//	reserve(key, field, amount, ms, model)  returns whether the reservation is new
const BudgetFunctions = `
local function token_of(key)
	local at = string.find(key, 'budget:', 1, true)
	return string.sub(key, at + #'budget:'), string.sub(key, 1, at - 1)
end
local function uncharge(key, field)
	local token, prefix = token_of(key)
	local mark = prefix .. 'charged:' .. field
	local charge = redis.call('GET', mark)
	if not charge then return end
	local amount, day, counted = string.match(charge, '^(%d+) (%S+) (.*)$')
	if amount ~= '0' then redis.call('HINCRBY', key, 'spent', '-' .. amount) end
	local usage, fields = prefix .. 'usage:' .. day .. ':' .. token, cjson.decode(counted)
	for i = 1, #fields, 2 do
		local less = string.format('%.0f', -fields[i + 1])
		if redis.call('HINCRBY', usage, fields[i], less) == 0 then redis.call('HDEL', usage, fields[i]) end
		local model, channel, counter = string.match(fields[i], '^(%S*) (%S*) (%S+)$')
		redis.call('HINCRBY', prefix .. 'usage-models:' .. day, model .. ' ' .. counter, less)
		redis.call('HINCRBY', prefix .. 'usage-channels:' .. day, channel .. ' ' .. counter, less)
	end
	redis.call('DEL', mark)
end
local function amend(key, field, cost)
	local entry = redis.call('HGET', key, field)
	if not entry then
		if cost < 0 then uncharge(key, field) end
		return 0
	end
	local amount, rest = string.match(entry, '^(%d+)(.*)$')
	if cost < 0 then
		redis.call('HDEL', key, field)
		cost = 0
	else
		redis.call('HSET', key, field, string.format('%.0f', cost) .. rest)
	end
	local less = tonumber(amount) - cost
	if less ~= 0 then redis.call('HINCRBY', key, 'reserved', string.format('%.0f', -less)) end
	return less
end
local function reserve(key, field, amount, ms, model)
	local entry = string.format('%.0f %.0f ', amount, ms) .. model
	if redis.call('HSETNX', key, field, entry) == 0 then return false end
	redis.call('HINCRBY', key, 'reserved', string.format('%.0f', amount))
	return true
end
`

// reserveScript reserves for a task, unless it has a reservation or was settled.
//
//	KEYS   budget, tokens with budgets, the claim's settlement, the task's claims
//	ARGV   field, amount, model, budget, token id, lifetime of claims in s, 1 if the task's other claims are paid too
//	answer 1: covered
const reserveScript = BudgetFunctions + `
if redis.call('EXISTS', KEYS[3]) == 1 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 1 end
local sums = redis.call('HMGET', KEYS[1], 'spent', 'reserved')
local amount = tonumber(ARGV[2])
local more = tonumber(sums[1] or 0) + tonumber(sums[2] or 0) + amount - tonumber(ARGV[4])
if more > 0 then -- the task is paid once: what creates that broke off have reserved for it is not in its way
	for _, claim in ipairs(ARGV[7] == '1' and {} or redis.call('SMEMBERS', KEYS[4])) do
		local entry = redis.call('HGET', KEYS[1], claim)
		if entry then more = more - tonumber(string.match(entry, '^%d+')) end
	end
	if more > 0 then return 0 end
end
local time = redis.call('TIME')
reserve(KEYS[1], ARGV[1], amount, tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), ARGV[3])
redis.call('SADD', KEYS[2], ARGV[5])
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('EXPIRE', KEYS[4], ARGV[6])
return 1
`

// ledgerFunctions are the Lua functions that add the fields of one row to a usage hash, to its row of OtherModel where the hash is full and
// has none of them, and to the sums of the day's models and channels. days are the keys of dayKeys.
const ledgerFunctions = `
local function sum(days, fields, expiry)
	local full = {}
	for s = 2, 3 do full[s] = redis.call('HLEN', days[s]) >= ` + sumFieldsMost + ` end
	for i = 1, #fields, 2 do
		local names, counter = {}, nil
		names[2], names[3], counter = string.match(fields[i], '^(%S*) (%S*) (%S+)$')
		for s = 2, counter and 3 or 0 do
			local field = names[s] .. ' ' .. counter
			if full[s] and redis.call('HEXISTS', days[s], field) == 0 then field = '` + OtherModel + ` ' .. counter end
			redis.call('HINCRBY', days[s], field, string.format('%.0f', tonumber(fields[i + 1])))
		end
	end
	redis.call('EXPIRE', days[2], expiry)
	redis.call('EXPIRE', days[3], expiry)
end
local function add(days, usage, token, fields, expiry)
	if redis.call('HLEN', usage) >= ` + usageFieldsMost + ` then
		local known = false
		for i = 1, #fields, 2 do known = known or redis.call('HEXISTS', usage, fields[i]) == 1 end
		for i = 1, known and 0 or #fields, 2 do fields[i] = string.gsub(fields[i], '^%S+', '` + OtherModel + `', 1) end
	end
	redis.call('ZADD', days[1], 0, token)
	redis.call('EXPIRE', days[1], expiry)
	for i = 1, #fields, 2 do redis.call('HINCRBY', usage, fields[i], string.format('%.0f', fields[i + 1])) end
	redis.call('EXPIRE', usage, expiry)
	sum(days, fields, expiry)
end
`

// settleScript settles a task, once for each outcome; after completed or unknown there is no other.
//
//	KEYS   the claim's settlement, budget, the task's claims, the token's day, those of dayKeys
//	ARGV   outcome, its lifetime in s, field, cost, token id, JSON [field, n, …] of a task that ends
//	       first, the same of one that had failed before, expiry of the ledger in s
//	answer 1: settled now
const settleScript = BudgetFunctions + ledgerFunctions + `
local before = redis.call('GET', KEYS[1])
before = before and string.match(before, '^%a+')
if before and (before ~= 'failed' or ARGV[1] ~= 'completed') then return 0 end
amend(KEYS[2], ARGV[3], -1)
for _, claim in ipairs(redis.call('SMEMBERS', KEYS[3])) do amend(KEYS[2], claim, -1) end
redis.call('DEL', KEYS[3])
if ARGV[4] ~= '0' then redis.call('HINCRBY', KEYS[2], 'spent', ARGV[4]) end
redis.call('HSET', KEYS[2], 'used', redis.call('TIME')[1])
add({KEYS[5], KEYS[6], KEYS[7]}, KEYS[4], ARGV[5], cjson.decode(before and ARGV[7] or ARGV[6]), ARGV[8])
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[4], 'EX', ARGV[2])
return 1
`

// endScript ends a reservation for an operator, or for a create whose task did not start.
//
//	KEYS   budget, the mark of the charge, the token's day, those of dayKeys
//	ARGV   field, how it ends: charge, refund or free, token id, JSON [field, n, …] to charge, expiry of the ledger in s,
//	       day, lifetime of the mark in s
//	answer 1: it existed
const endScript = BudgetFunctions + ledgerFunctions + `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
	if ARGV[2] == 'free' then uncharge(KEYS[1], ARGV[1]) end
	return 0
end
local less = string.format('%.0f', amend(KEYS[1], ARGV[1], -1))
if ARGV[2] == 'charge' then
	redis.call('HINCRBY', KEYS[1], 'spent', less)
	add({KEYS[4], KEYS[5], KEYS[6]}, KEYS[3], ARGV[3], cjson.decode(ARGV[4]), ARGV[5])
	redis.call('SET', KEYS[2], less .. ' ' .. ARGV[6] .. ' ' .. ARGV[4], 'EX', ARGV[7])
end
return 1
`
