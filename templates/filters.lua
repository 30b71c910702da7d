-- The filters of rules and their shares: changes of headers, rewrites, CORS and redirects. A record names a list of steps
-- in filters.map, docs/architecture.md has their forms. What answers a request itself goes first; the others follow in the
-- order of the list, in which a rule's steps stand before those of the share.

local shared = require("shared")

local steps = Map.new("maps/filters.map", Map._str)

local MAX_ORIGIN   = 512 -- bytes; a hostname has no more than 253
local DEFAULT_PORT = { http = "80", https = "443" }

local filters = {}

-- Origins --------------------------------------------------------------------------------------------------------------

-- parts_of takes an origin apart; one without a port has its scheme's (HTTPCORSFilter.allowOrigins). "null" has no parts.
local function parts_of(origin)
  if #origin > MAX_ORIGIN then return nil end
  local scheme, rest = origin:lower():match("^(https?)://(.+)$")
  if not scheme then return nil end
  local port = rest:match(":(%d+)$")
  local host = port and rest:sub(1, -#port - 2) or rest
  return { scheme = scheme, host = host, port = port or DEFAULT_PORT[scheme] }
end

local function new_cors(max_age, credentials)
  return { max_age = max_age, credentials = credentials == "true", exact = {}, wild = {}, methods = {}, headers = {}, expose = {} }
end

local function add_origin(cors, origin)
  if origin == "*" then cors.any_origin = true return end
  local parts = parts_of(origin)
  if not parts then return end
  if parts.host:byte(1) == 42 then -- "*": any number of labels, or all of a hostname
    parts.suffix = parts.host:sub(2)
    cors.wild[#cors.wild + 1] = parts
  else
    cors.exact[parts.scheme .. parts.host .. ":" .. parts.port] = true
  end
end

local function is_allowed(cors, origin)
  local is = parts_of(origin)
  if not is then return false end
  if cors.exact[is.scheme .. is.host .. ":" .. is.port] then return true end
  for i = 1, #cors.wild do
    local wild = cors.wild[i]
    if is.scheme == wild.scheme and is.port == wild.port and #is.host > #wild.suffix
      and (wild.suffix == "" or is.host:sub(-#wild.suffix) == wild.suffix) then
      return true
    end
  end
  return false
end

-- allowed is the value of Access-Control-Allow-Origin for an origin, nil for none. With credentials it is never "*".
local function allowed(cors, origin)
  if not origin then return nil end
  if cors.any_origin then return cors.credentials and origin or "*" end
  return is_allowed(cors, origin) and origin or nil
end

-- Lists of steps -------------------------------------------------------------------------------------------------------

local function redirect_of(text)
  local status, scheme, host, port, form, path = text:match("^(%d+)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.*)$")
  return { status = tonumber(status), scheme = scheme, host = host, port = port, form = form, path = path }
end

-- read has a function for each kind of step, which puts it into the list's parsed form.
local read = {
  h = function(list, _, value) list.host = value end,
  p = function(list, form, value) list.path = { form = form, path = value } end,
  r = function(list, _, value) list.redirect = redirect_of(value) end,
  c = function(list, max_age, credentials) list.cors = new_cors(max_age, credentials) end,
  o = function(list, _, origin) add_origin(list.cors, origin) end,
  m = function(list, _, method) table.insert(list.cors.methods, method) end,
  n = function(list, _, name) table.insert(list.cors.headers, name) end,
  t = function(list, slot, draws) table.insert(list.mirrors, { slot = slot, draws = tonumber(draws) }) end,
  e = function(list, _, name) table.insert(list.cors.expose, name) end,
}
for _, operation in ipairs({ "s", "a", "d" }) do
  read[operation] = function(list, name, value) table.insert(list.request, { operation = operation, name = name, value = value }) end
  read[operation:upper()] = function(list, name, value) table.insert(list.response, { operation = operation, name = name, value = value }) end
end

local list_of = shared.kept(function(name)
  local count = tonumber(steps:lookup(name))
  if not count then return nil end
  local list, bytes = { request = {}, response = {}, mirrors = {} }, 0
  for i = 1, count do
    local step = steps:lookup(name .. "." .. i)
    local kind, key, value = (step or ""):match("^(%a)([^=]*)=(.*);$")
    if not kind then return nil end
    read[kind](list, key, value)
    bytes = bytes + #step
  end
  list.answers = list.cors or #list.response > 0
  return list, bytes
end)

filters.list_of = list_of

-- CORS -----------------------------------------------------------------------------------------------------------------

local CORS_HEADERS = {
  "access-control-allow-origin", "access-control-allow-credentials", "access-control-expose-headers",
  "access-control-allow-methods", "access-control-allow-headers", "access-control-max-age",
}
local SAFELISTED = {
  ["cache-control"] = true, ["content-language"] = true, ["content-length"] = true, ["content-type"] = true,
  ["expires"] = true, ["last-modified"] = true, ["pragma"] = true, ["set-cookie"] = true, ["vary"] = true,
}

-- listed is the value of an Access-Control-Allow-* header: what is allowed, or for the wildcard itself, or if there are
-- credentials what was asked for instead of it. nil is no header.
local function listed(cors, list, asked)
  if list[1] == "*" then return not cors.credentials and "*" or asked end
  return list[1] and table.concat(list, ", ")
end

-- names_of is what "*" in exposeHeaders stands for where the wildcard itself must not be sent: the names that are there.
local function names_of(headers)
  local names = {}
  for name in pairs(headers) do
    if not SAFELISTED[name] and name:sub(1, 15) ~= "access-control-" then names[#names + 1] = name end
  end
  table.sort(names)
  return names[1] and table.concat(names, ", ")
end

-- share gives an answer's CORS headers to add.
local function share(cors, origin, answer_headers, add)
  add("access-control-allow-origin", origin)
  if cors.credentials then add("access-control-allow-credentials", "true") end
  local expose = listed(cors, cors.expose, answer_headers and names_of(answer_headers))
  if expose then add("access-control-expose-headers", expose) end
end

-- varies says whether answers to different origins differ: caches must know.
local function varies(cors) return cors.credentials or not cors.any_origin end

local function answer_preflight(txn, cors, origin)
  local reply = txn:reply({ status = 204 })
  local function add(name, value) reply:add_header(name, value) end
  add("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
  local allow = allowed(cors, origin)
  if allow then
    share(cors, allow, nil, add)
    local methods = listed(cors, cors.methods, txn.f:req_fhdr("access-control-request-method"))
    if methods then add("access-control-allow-methods", methods) end
    local headers = listed(cors, cors.headers, shared.header_value(txn, "access-control-request-headers"))
    if headers then add("access-control-allow-headers", headers) end
    add("access-control-max-age", cors.max_age)
  end
  txn:done(reply)
end

local function has_vary_origin(txn)
  for i = 1, txn.f:res_fhdr_cnt("vary") or 0 do
    for name in txn.sf:res_fhdr("vary", i):gmatch("[^,%s]+") do
      if name == "*" or name:lower() == "origin" then return true end
    end
  end
  return false
end

-- share_answer puts our CORS headers in the place of the backend's.
local function share_answer(txn, cors)
  for _, name in ipairs(CORS_HEADERS) do txn.http:res_del_header(name) end
  if varies(cors) and not has_vary_origin(txn) then txn.http:res_add_header("vary", "Origin") end
  local origin = txn:get_var("txn.origin")
  if origin then
    local headers = cors.credentials and cors.expose[1] == "*" and txn.http:res_get_headers() or nil
    share(cors, origin, headers, function(name, value) txn.http:res_add_header(name, value) end)
  end
end

-- Paths ----------------------------------------------------------------------------------------------------------------

-- replaced is a path after a replacement whose form is "full", the length of the prefix that was matched, or "-". The seam
-- has one slash; those that the client sent elsewhere are its own.
local function replaced(path, form, replacement)
  if form == "full" then
    path = replacement
  elseif form ~= "-" then
    local rest = path:sub(tonumber(form) + 1)
    path = replacement
    if rest ~= "" and rest:sub(1, 1) ~= "/" then rest = "/" .. rest end
    if path:sub(-1) == "/" and rest:sub(1, 1) == "/" then rest = rest:sub(2) end
    path = path .. rest
  end
  if path:sub(1, 1) ~= "/" then path = "/" .. path end
  return path
end

-- Redirects ------------------------------------------------------------------------------------------------------------

-- A port of "listener" is the listener's, without one where it is the scheme's own; "-" keeps what the request has.
local function authority(txn, redirect, scheme)
  local host = redirect.host
  if host == "-" then host = txn.c:host_only(txn.sf:req_fhdr("host")) end
  local port = redirect.port
  if port == "listener" then port = tostring(txn:get_var("sess.public")) end
  if port == "-" or port == DEFAULT_PORT[scheme] then return host end
  return host .. ":" .. port
end

local function answer_redirect(txn, list)
  local redirect = list.redirect
  local scheme = redirect.scheme
  if scheme == "-" then scheme = txn:get_var("sess.scheme") end
  local path, query = replaced(txn.sf:path(), redirect.form, redirect.path), txn.sf:query()
  if query ~= "" then path = path .. "?" .. query end
  local reply = txn:reply({ status = redirect.status })
  reply:add_header("location", scheme .. "://" .. authority(txn, redirect, scheme) .. path)
  reply:add_header("content-length", "0")
  local cors = list.cors
  if cors then
    if varies(cors) then reply:add_header("vary", "Origin") end
    local origin = allowed(cors, txn.f:req_fhdr("origin"))
    if origin then share(cors, origin, nil, function(name, value) reply:add_header(name, value) end) end
  end
  txn:done(reply)
end

-- Actions --------------------------------------------------------------------------------------------------------------

local function fail(txn)
  local reply = txn:reply({ status = 500 })
  reply:add_header("content-type", "text/plain")
  reply:set_body("500 the route's filters are not there\n")
  txn:done(reply)
end

-- rewrite_host keeps the name that the client used where backends look for it, unless a proxy that is trusted said it.
local function rewrite_host(txn, host)
  if not (txn:get_var("txn.trusted") and txn.f:req_fhdr("x-forwarded-host")) then
    txn.http:req_set_header("x-forwarded-host", txn.sf:req_fhdr("host"))
  end
  txn.http:req_set_header("host", host)
end

local function change_request(txn, list)
  for i = 1, #list.request do
    local step = list.request[i]
    if step.operation == "s" then txn.http:req_set_header(step.name, step.value)
    elseif step.operation == "a" then txn.http:req_add_header(step.name, step.value)
    else txn.http:req_del_header(step.name) end
  end
  if list.host then rewrite_host(txn, list.host) end
  if list.path then txn.http:req_set_path(replaced(txn.sf:path(), list.path.form, list.path.path)) end
end

-- apply answers the request, or changes it and remembers what is to be done to the answer.
function filters.apply(txn, name)
  local list = list_of(name)
  if not list then return fail(txn) end
  local cors = list.cors
  local origin = cors and txn.f:req_fhdr("origin")
  if origin and txn.f:method() == "OPTIONS" and txn.f:req_fhdr("access-control-request-method") then
    return answer_preflight(txn, cors, origin)
  end
  if list.redirect then return answer_redirect(txn, list) end
  local allow = cors and allowed(cors, origin)
  if allow then txn:set_var("txn.origin", allow) end
  change_request(txn, list)
  if list.answers then
    shared.private(txn).filters = list
    txn:set_var("txn.answers", true)
  end
end

core.register_action("filters", { "http-req" }, function(txn)
  filters.apply(txn, txn:get_var("txn.record"):match(";(f[^;]*)$"))
end)

core.register_action("answer", { "http-res", "http-after-res" }, function(txn)
  local list = shared.private(txn).filters
  txn:unset_var("txn.answers") -- Once is enough.
  if list.cors then share_answer(txn, list.cors) end
  for i = 1, #list.response do
    local step = list.response[i]
    if step.operation == "s" then txn.http:res_set_header(step.name, step.value)
    elseif step.operation == "a" then txn.http:res_add_header(step.name, step.value)
    else txn.http:res_del_header(step.name) end
  end
end)

return filters
