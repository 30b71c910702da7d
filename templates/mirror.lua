-- Mirrors: a filter that keeps a request while it passes, and sends copies of it when it is complete (docs/decisions/0023).
-- Only frontends whose requests all have mirrors have it.

local filters = require("filters")

-- Per thread: what exceeds it is not mirrored. A mirror must not cost what it does not show.
local MAX_BODY   = 4 * 1024 * 1024
local MAX_HELD   = 32 * 1024 * 1024 -- of all bodies that are kept or on their way
local MAX_COPIES = 256              -- on their way
local TIMEOUT    = 10000            -- milliseconds that a target has
local AFTER      = 5                -- milliseconds in which the request itself goes first
local SILENCE    = 60               -- seconds between two complaints

-- What belongs to one connection, and what the copy's own framing says.
local OMITTED = {
  ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["keep-alive"] = true, ["proxy-connection"] = true,
  ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
}

local socket
local held, copies = 0, 0
local left_out, complained = 0, 0

local function leave_out()
  left_out = left_out + 1
  local now = core.now().sec
  if now - complained < SILENCE then return end
  core.Warning("limpet: " .. left_out .. " requests were not mirrored: their bodies were too long, or their targets too slow")
  left_out, complained = 0, now
end

-- done counts a body until the last of its copies is done.
local function done(copy)
  copies = copies - 1
  copy.body.users = copy.body.users - 1
  if copy.body.users == 0 then held = held - copy.body.size end
end

local function send(copy)
  core.msleep(AFTER)
  pcall(function()
    local client = core.httpclient()
    local request = { url = "http://limpet" .. copy.uri, headers = copy.headers, dst = socket, timeout = TIMEOUT }
    if copy.body.size > 0 then
      request.body = copy.body.text
      client:post(request)
    else
      client:get(request)
    end
  end)
  done(copy)
end

local Mirror = { id = "mirror", flags = filter.FLT_CFG_FL_HTX }
Mirror.__index = Mirror

function Mirror:new() return setmetatable({}, Mirror) end

local function drawn(list)
  local targets = {}
  for _, mirror in ipairs(list and list.mirrors or {}) do
    if math.random(mirror.denominator) <= mirror.numerator then targets[#targets + 1] = mirror.slot end
  end
  return targets
end

function Mirror:forget()
  if self.chunks then held, self.chunks = held - self.size, nil end
end

function Mirror:start_analyze(_, channel)
  if not channel:is_resp() then filter.register_data_filter(self, channel) end
  return filter.CONTINUE
end

function Mirror:end_analyze(_, channel)
  if not channel:is_resp() then self:forget() end
  return filter.CONTINUE
end

-- http_headers sees what the backend gets: the frontend's rules have run.
function Mirror:http_headers(txn, message)
  if message.channel:is_resp() then return filter.CONTINUE end
  local line, headers = message:get_stline(), message:get_headers()
  local targets = drawn(filters.list_of(txn:get_var("txn.filters")))
  local uri = line.uri:gsub("^%a+://[^/]*", "")
  if #targets == 0 or headers["upgrade"] or uri:byte(1) ~= 47 then -- "/"
    filter.unregister_data_filter(self, message.channel)
    return filter.CONTINUE
  end
  self.targets, self.uri, self.method, self.headers = targets, uri, line.method, {}
  for name, values in pairs(headers) do
    if not OMITTED[name] then
      local list = {}
      for i = 0, #values do list[#list + 1] = values[i] end
      self.headers[name] = list
    end
  end
  -- The HTTP client adds these, and the frontend removes them again.
  self.lacks = (headers["accept"] and "" or "accept ") .. (headers["user-agent"] and "-" or "user-agent")
  self.chunks, self.size = {}, 0
  return filter.CONTINUE
end

function Mirror:http_payload(_, message)
  if message.channel:is_resp() or not self.chunks then return end
  local part = message:body()
  if not part or #part == 0 then return end
  if self.size + #part > MAX_BODY or held + #part > MAX_HELD then
    self:forget()
    return leave_out()
  end
  self.chunks[#self.chunks + 1] = part
  self.size, held = self.size + #part, held + #part
end

function Mirror:http_end(_, message)
  if message.channel:is_resp() or not self.chunks then return filter.CONTINUE end
  if copies + #self.targets > MAX_COPIES then
    self:forget()
    leave_out()
    return filter.CONTINUE
  end
  local body = { text = table.concat(self.chunks), size = self.size, users = #self.targets }
  self.chunks = nil -- Its size is the copies' now.
  copies = copies + #self.targets
  for _, slot in ipairs(self.targets) do
    local headers = { ["limpet-slot"] = { slot }, ["limpet-method"] = { self.method }, ["limpet-lacks"] = { self.lacks } }
    for name, values in pairs(self.headers) do headers[name] = values end
    core.register_task(send, { uri = self.uri, headers = headers, body = body })
  end
  return filter.CONTINUE
end

core.register_filter("mirror", Mirror, function(instance, arguments)
  socket = arguments[1]
  return instance
end)
