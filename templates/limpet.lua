-- What native rules cannot do: conditional routes, weighted splits, and session names that are not written into the
-- configuration; filters are in a file of their own. Plain routes never come here.

local shared  = require("shared")
local filters = require("filters")
require("mirror")

local kept, split_fields, header_value = shared.kept, shared.split_fields, shared.header_value

local paths      = Map.new("maps/paths.map", Map._beg)
local parents    = Map.new("maps/parents.map", Map._str)
local candidates = Map.new("maps/candidates.map", Map._str)
local hosts      = Map.new("maps/hosts.map", Map._str)
local names      = Map.new("maps/sni.map", Map._str)
local splits     = Map.new("maps/splits.map", Map._str)
local sessions   = Map.new("maps/sessions.map", Map._str)

local EXACT_END   = "/\1"
local MAX_STEPS   = 10000 -- of one evaluation of an expression
local MAX_REGEXES = 256   -- evaluations for one request, over all groups that it walks through
local MAX_PARENTS = 16    -- a chain of broader hostnames is no longer than a hostname has labels we strip
local MAX_QUERY   = 256   -- parameters of a query that are looked at
local MAX_COOKIES = 512   -- cookies that are looked at, and those of them that have a session's name
local MAX_TOKENS  = 16
local MAX_HOST    = 253   -- a longer hostname is none (RFC 1035)

-- A user's expression must match the whole value, and gives up early: the bound keeps a catastrophic one from holding
-- the thread until the watchdog ends the process. One that gave up looks like one that did not match, so its contrary is
-- asked too: if neither matches, nobody knows.
local function compile(expression)
  local bound = "(*LIMIT_MATCH=" .. MAX_STEPS .. ")^"
  local ok, is = Regex.new(bound .. "(?:" .. expression .. ")$", true)
  local fine, isnt = Regex.new(bound .. "(?!(?:" .. expression .. ")$)", true)
  return ok and fine and { is = is, isnt = isnt } or nil
end

-- Conditions ---------------------------------------------------------------------------------------------------------

local function parse_condition(line)
  local on, operator, name, value = line:match("^(%a)([=~])([^=]*)=(.*);$")
  if not on then return nil end
  local condition = { on = on, name = name, value = value }
  if operator == "~" then
    condition.expression, condition.regex = value, compile(value)
  end
  return condition
end

local group_of = kept(function(name)
  local head = candidates:lookup(name)
  if not head then return nil end
  local length, count = head:match("^(%d+) (%d+)$")
  local group, bytes = { length = tonumber(length) }, #head
  for i = 1, tonumber(count) do
    local line = candidates:lookup(name .. "." .. i)
    if not line then return nil end
    local conditions, target = line:match("^(%d+) (.*)$")
    local candidate = { target = target }
    for j = 1, tonumber(conditions) do
      local condition = candidates:lookup(name .. "." .. i .. "." .. j)
      candidate[j] = condition and parse_condition(condition)
      if not candidate[j] then return nil end
      bytes = bytes + #condition
    end
    group[i] = candidate
  end
  return group, bytes
end)

local function decode(text)
  if not text:find("[+%%]") then return text end
  text = text:gsub("+", " "):gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end)
  return text
end

-- query_value reads the parameters once: HAProxy's own fetch takes ";" and a second "?" for separators, and neither decodes
-- names nor knows a parameter without a value. Of a repeated one the first counts.
local function query_value(txn, name, seen)
  if not seen.arguments then
    seen.arguments = {}
    local left = MAX_QUERY
    for part in txn.sf:query():gmatch("[^&]+") do
      local key, value = part:match("^([^=]*)=?(.*)$")
      key = decode(key)
      seen.arguments[key] = seen.arguments[key] or decode(value)
      left = left - 1
      if left == 0 then break end
    end
  end
  return seen.arguments[name]
end

-- seen remembers a request's values, so that a header that many candidates ask for is fetched once.
local function value_of(txn, condition, seen)
  local id = condition.on .. condition.name
  local value = seen[id]
  if value == nil then
    if condition.on == "m" then value = txn.f:method()
    elseif condition.on == "p" then value = txn.f:path()
    elseif condition.on == "h" then value = header_value(txn, condition.name)
    else value = query_value(txn, condition.name, seen) end
    if value == nil then value = false end
    seen[id] = value
  end
  return value
end

-- matches evaluates an expression, within bounds. One that cannot be evaluated ends the search: to go on as if it did not
-- match would send the request where its owner did not want it.
local function matches(condition, value, seen)
  seen.regexes = seen.regexes + 2
  if seen.regexes > MAX_REGEXES or not condition.regex then
    seen.failed = true
  elseif condition.regex.is:match(value) then
    return true
  elseif not condition.regex.isnt:match(value) then
    seen.failed = true
  end
  return false
end

local function holds(txn, candidate, seen)
  for i = 1, #candidate do
    local condition = candidate[i]
    local value = value_of(txn, condition, seen)
    if not value then return false end
    if condition.expression then
      if not matches(condition, value, seen) then return false end
    elseif value ~= condition.value then
      return false
    end
  end
  return true
end

-- Routes -------------------------------------------------------------------------------------------------------------

-- within returns what a request takes within one virtual host: the first candidate that holds at the longest path, then
-- at the next shorter one.
local function within(txn, key, target, seen)
  while target do
    if target:byte(1) ~= 103 then return target end -- "g"
    local group = group_of(target)
    if not group then return nil end
    for i = 1, #group do
      if holds(txn, group[i], seen) then return group[i].target end
      if seen.failed then return "500" end
    end
    key = key:sub(1, group.length - 1)
    target = paths:lookup(key)
  end
end

-- route goes on where the native look-up found a group, or nothing although a broader hostname may have it.
core.register_fetches("route", function(txn)
  local host, target = txn:get_var("txn.host_id"), txn:get_var("txn.to")
  local tail = (txn.f:path() or "") .. EXACT_END
  local seen = { regexes = 0 }
  for _ = 1, MAX_PARENTS do
    local found = within(txn, host .. tail, target, seen)
    if found then return found end
    host = parents:lookup(host)
    if not host then return "" end
    target = paths:lookup(host .. tail)
  end
  return ""
end)

-- deep_host and deep_name find the wildcard for a hostname with more labels than the native rules strip.
local function deepest(map, hostname, port)
  if #hostname > MAX_HOST then return nil end
  local suffix = hostname:match("^[^.]*%.(.+)$")
  while suffix do
    local found = map:lookup(suffix .. "|*" .. port)
    if found then return found end
    suffix = suffix:match("^[^.]*%.(.+)$")
  end
end

core.register_fetches("deep_host", function(txn) return deepest(hosts, txn:get_var("txn.host"), txn:get_var("sess.port")) end)
core.register_fetches("deep_name", function(txn) return deepest(names, txn:get_var("sess.sni"), txn:get_var("sess.port")) end)

-- Sessions -----------------------------------------------------------------------------------------------------------

local parsed_session = kept(function(text)
  local fields = split_fields(text, ";")
  local carrier, name = fields[1]:match("^(%a+):(.*)$")
  return {
    carrier = carrier, name = name, other = fields[2] ~= "-" and fields[2] or nil, scope = fields[3], backend = fields[3]:match("[^.]*$"),
    absolute = tonumber(fields[4]), idle = tonumber(fields[5]),
  }, #text
end)

local function session_of(id)
  local text = id ~= "-" and sessions:lookup(id)
  return text and parsed_session(text)
end

-- proven says whether a token's MAC is right. The native rules say so again of the one that is chosen.
local function proven(txn, token, scope)
  if #token > 200 then return false end
  local signed, key, mac = token:match("^((1%w)%..*)%.([^.]+)$")
  local secret = signed and txn:get_var("proc.sign_" .. key:sub(2))
  if not secret then return false end
  return txn.c:ub64enc(txn.c:hmac(signed .. "." .. scope, "sha256", secret):sub(1, 16)) == mac
end

local function trimmed(text)
  local from = text:find("%S")
  return from and text:match(".*%S", from) or ""
end

-- cookie_values are the values of a cookie, in the order in which they were sent.
local function cookie_values(txn, name)
  local values, left = {}, MAX_COOKIES
  for i = 1, txn.f:req_fhdr_cnt("cookie") or 0 do
    for part in txn.sf:req_fhdr("cookie", i):gmatch("[^;]+") do
      left = left - 1
      if left < 0 then return values end
      local equals = part:find("=", 1, true)
      if equals and trimmed(part:sub(1, equals - 1)) == name then
        values[#values + 1] = trimmed(part:sub(equals + 1))
        if #values == MAX_TOKENS then return values end
      end
    end
  end
  return values
end

-- tokens are what a request brings for a session: in its header, or in all cookies of its name, then of its other name.
local function tokens(txn, session)
  if session.carrier == "header" then return { txn.f:req_fhdr(session.name) } end
  local values = cookie_values(txn, session.name)
  if session.other then
    for _, value in ipairs(cookie_values(txn, session.other)) do values[#values + 1] = value end
  end
  return values
end

-- token looks again where the native rules found none that is proven: in a header whose name is not written into the
-- configuration, and in all cookies of the name or the session's other name. Several are sent where paths overlap, or when
-- somebody else sets one; the first proven one counts, as browsers send the most specific first (RFC 6265, 5.4).
core.register_fetches("token", function(txn)
  local session = parsed_session(txn:get_var("txn.params"))
  if session.carrier == "header" then return txn.sf:req_fhdr(session.name) end
  for _, value in ipairs(tokens(txn, session)) do
    if proven(txn, value, session.scope) then return value end
  end
end)

-- held_since is when the newest token of a session was issued, of those that are proven and not expired. A token of another
-- backend is told by its name, before its MAC costs anything.
local function held_since(txn, session)
  local now, newest = core.now().sec, nil
  for _, value in ipairs(tokens(txn, session)) do
    local backend, issued, seen = value:match("^1%w%.([^.]*)%.[^.]*%.(%d+)%.(%d+)%.[^.]*$")
    issued, seen = tonumber(issued), tonumber(seen)
    if backend == session.backend and now - issued < session.absolute and not (session.idle and now - seen >= session.idle)
      and (not newest or issued > newest) and proven(txn, value, session.scope) then
      newest = issued
    end
  end
  return newest
end

core.register_action("give_token", { "http-res" }, function(txn)
  local session = parsed_session(txn:get_var("txn.params"))
  txn.http:res_set_header(session.name, txn:get_var("txn.signed") .. "." .. txn:get_var("txn.mac"))
end)

-- Splits -------------------------------------------------------------------------------------------------------------

local function parse_split(text)
  local split = { total = 0 }
  for _, share in ipairs(split_fields(text, ",")) do
    local weight, record = share:match("^(%d+) (.*)$")
    split.total = split.total + tonumber(weight)
    split[#split + 1] = { weight = tonumber(weight), record = record }
  end
  return split, #text
end

local parsed_split = kept(parse_split)

-- stuck finds the share that a sticky session chooses, one without weight too: that of the newest token that holds.
local function stuck(txn, split)
  local found, newest
  for i = 1, #split do
    local session = session_of(split[i].record:match("^[^;]*;[^;]*;([^;]*)"))
    local issued = session and held_since(txn, session)
    if issued and (not newest or issued > newest) then found, newest = split[i], issued end
  end
  return found
end

-- draw puts the record of a share, chosen by weight unless a session decides, in the place of the rule's.
local function draw(txn, how, rule)
  local text = splits:lookup(rule)
  local split = text and parsed_split(text)
  if not split then return end
  local share = how == "keep" and stuck(txn, split)
  if share then return txn:set_var("txn.record", share.record) end
  local left = math.random(split.total)
  for i = 1, #split do
    left = left - split[i].weight
    if left <= 0 then return txn:set_var("txn.record", split[i].record) end
  end
end

-- rule does what a rule's record names: "draw;<rule>" or "keep;<rule>", then "redirect;<filters>".
core.register_action("rule", { "http-req", "tcp-req" }, function(txn)
  local how, rule = (txn:get_var("txn.record") or ""):match("^(%a+);(.*)$")
  if how == "draw" or how == "keep" then draw(txn, how, rule) end
  local answer = (txn:get_var("txn.record") or ""):match("^redirect;(.*)$")
  if answer then filters.apply(txn, answer) end
end)
