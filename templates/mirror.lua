-- Mirrors: copies of requests, for those that the native rules have drawn (docs/decisions/0023). What is there as a whole, as
-- most requests are, is copied at once. What is still to come takes the hop, whose filter keeps it while it passes.

local filters = require("filters")
local shared  = require("shared")

-- Per thread: what exceeds it is not mirrored. A mirror must not cost what it does not show.
local MAX_BODY   = 4 * 1024 * 1024
local MAX_HELD   = 32 * 1024 * 1024 -- of all bodies that are kept or on their way
local MAX_COPIES = 256              -- on their way
local MAX_SHARE  = 64               -- of them to one target: one that hangs leaves room for others
local TIMEOUT    = 10000            -- milliseconds that a target has
local AFTER      = 5                -- milliseconds in which the request itself goes first
local SILENCE    = 60               -- seconds between two complaints

-- What belongs to one connection, and what the copy's own framing says.
local OMITTED = {
  ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["keep-alive"] = true, ["proxy-connection"] = true,
  ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
}

local socket
local held, copies, copies_to = 0, 0, {}
local left_out, complained = 0, 0

local function leave_out()
  left_out = left_out + 1
  local now = core.now().sec
  if now - complained < SILENCE then return end
  core.Warning("limpet: " .. left_out .. " requests were not mirrored: their bodies were too long, or their targets too slow")
  left_out, complained = 0, now
end

-- Copies ---------------------------------------------------------------------------------------------------------------

-- done counts a body until the last of its copies is done.
local function done(copy)
  copies, copies_to[copy.slot] = copies - 1, copies_to[copy.slot] - 1
  if copies_to[copy.slot] == 0 then copies_to[copy.slot] = nil end
  copy.body.users = copy.body.users - 1
  if copy.body.users == 0 then held = held - #copy.body.text end
end

local function send(copy)
  core.msleep(AFTER)
  pcall(function()
    local client = core.httpclient()
    local request = { url = "http://limpet" .. copy.uri, headers = copy.headers, dst = socket, timeout = TIMEOUT }
    if #copy.body.text > 0 then
      request.body = copy.body.text
      client:post(request)
    else
      client:get(request)
    end
  end)
  done(copy)
end

-- head_of is what copies repeat of a request's head; headers are as HAProxy gives them, counted from 0. A rule's filter may set
-- names that are ours: where a copy goes is never said by a user.
local function head_of(method, uri, headers)
  local head = { method = method, uri = uri, headers = {} }
  for name, values in pairs(headers) do
    if not OMITTED[name] and name:sub(1, 7) ~= "limpet-" then
      local list = {}
      for i = 0, #values do list[#list + 1] = values[i] end
      head.headers[name] = list
    end
  end
  -- Some servers of gRPC answer nobody who does not take trailers.
  if headers["te"] and headers["te"][0]:lower() == "trailers" then head.headers["te"] = { "trailers" } end
  -- The HTTP client adds these, and the frontend removes them again.
  head.lacks = (headers["accept"] and "" or "accept ") .. (headers["user-agent"] and "-" or "user-agent")
  return head
end

-- copy starts the copies of a request that is complete. Its text is counted in held already.
local function copy(head, text, targets)
  local body = { text = text, users = 0 }
  for _, slot in ipairs(targets) do
    local under_way = copies_to[slot] or 0
    if copies == MAX_COPIES or under_way == MAX_SHARE then
      leave_out()
    else
      local headers = {}
      for name, values in pairs(head.headers) do headers[name] = values end
      headers["limpet-slot"], headers["limpet-method"], headers["limpet-lacks"] = { slot }, { head.method }, { head.lacks }
      copies, copies_to[slot], body.users = copies + 1, under_way + 1, body.users + 1
      core.register_task(send, { slot = slot, uri = head.uri, headers = headers, body = body })
    end
  end
  if body.users == 0 then held = held - #text end
end

-- What is there as a whole -----------------------------------------------------------------------------------------------

local STREAMED = { POST = true, PUT = true, PATCH = true }

-- body_of is a request's body if all of it is there. Without a length it has none in HTTP/1.1, and in HTTP/2 it has none if the
-- native rules waited for its first byte in vain.
local function body_of(txn)
  if txn.f:req_fhdr("transfer-encoding") then return nil end
  local length, here = txn.f:req_fhdr("content-length"), txn.f:req_body_len() or 0
  if length then return tonumber(length) == here and txn.sf:req_body() or nil end
  if here > 0 or txn.f:req_ver() ~= "1.1" and STREAMED[txn.f:method()] then return nil end
  return ""
end

local function targets_of(txn)
  local draw, targets = txn:get_var("txn.draw"), {}
  local list = filters.list_of(txn:get_var("txn.record"):match(":(m[^;]*)"))
  for _, mirror in ipairs(list and list.mirrors or {}) do
    if draw < mirror.draws then targets[#targets + 1] = mirror.slot end
  end
  return targets
end

-- take_hop puts the hop that keeps what passes in the place of the request's section.
local function take_hop(txn, targets)
  local fields = shared.split_fields(txn:get_var("txn.record"), ";")
  if fields[1]:byte(1) == 115 then fields[5] = fields[5] .. ":-:" .. fields[1] end -- "s": a slot
  fields[1] = "limpet-mirror"
  txn:set_var("txn.record", table.concat(fields, ";"))
  txn:set_var("txn.limits", fields[5])
  txn:set_var("txn.targets", table.concat(targets, ","))
end

core.register_action("mirror", { "http-req" }, function(txn)
  local uri = txn.sf:pathq()
  if txn.f:req_fhdr("upgrade") or uri:byte(1) ~= 47 then return end -- "/"
  local text, targets = body_of(txn), targets_of(txn)
  if not text then return take_hop(txn, targets) end
  if held + #text > MAX_HELD then return leave_out() end
  held = held + #text
  copy(head_of(txn.f:method(), uri, txn.http:req_get_headers()), text, targets)
end)

-- What is still to come --------------------------------------------------------------------------------------------------

local Mirror = { id = "mirror", flags = filter.FLT_CFG_FL_HTX }
Mirror.__index = Mirror

function Mirror:new() return setmetatable({}, Mirror) end

function Mirror:forget()
  if self.chunks then held, self.chunks = held - self.size, nil end
end

function Mirror:start_analyze(_, channel)
  -- Of the answer too: HAProxy 3.0 holds back what comes before the request is complete otherwise.
  filter.register_data_filter(self, channel)
  return filter.CONTINUE
end

function Mirror:end_analyze(_, channel)
  if not channel:is_resp() then self:forget() end
  return filter.CONTINUE
end

-- http_headers sees what the backend gets: the frontend's rules have run.
function Mirror:http_headers(txn, message)
  if message.channel:is_resp() then return filter.CONTINUE end
  local line = message:get_stline()
  self.targets = shared.split_fields(txn:get_var("txn.targets"), ",")
  self.head = head_of(line.method, line.uri:gsub("^%a+://[^/]*", ""), message:get_headers())
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
  local text = table.concat(self.chunks)
  self.chunks = nil -- What they held is the copies' now.
  copy(self.head, text, self.targets)
  return filter.CONTINUE
end

core.register_filter("mirror", Mirror, function(instance, arguments)
  socket = arguments[1]
  return instance
end)
