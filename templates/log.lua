-- What the access log says beyond what HAProxy knows: objects by the names that people gave them, and what became of the
-- client's session. It runs when a request is over, and only where an access log is wanted.

local shared = require("shared")

local labels = Map.new("maps/labels.map", Map._str)

-- label is what labels.map says of a key.
local function label(key) return key and labels:lookup(key) end

-- became says what happened to the session, and why. A token that is not proven was altered, is another rule's, or was
-- signed with a key that is gone: HAProxy cannot tell these apart.
local function became(txn, slot, server)
  if not txn:get_var("txn.params") then return "none", "" end
  local token = txn:get_var("txn.token")
  if type(token) ~= "string" then token = "" end -- a fetch that found nothing leaves a number
  local issued, pinned = txn:get_var("txn.issued"), txn:get_var("txn.pinned")
  if not server then return "none", "no endpoint answered" end
  if not issued then
    -- What begins with the session's name is the native rules' attempt at a cookie that is not there.
    if token == "" or token:sub(1, 7) == "cookie:" then return "new", "" end
    return "forged", "the token is not proven"
  end
  if not pinned then
    local limit = tonumber(txn:get_var("txn.absolute"))
    local idle = limit and os.time() - tonumber(issued) < limit
    return "expired", idle and "idleTimeout" or "absoluteTimeout"
  end
  if pinned == server then return "kept", "" end
  if not label(slot .. "/" .. pinned) then return "moved", "the endpoint is gone" end
  return "moved", "the endpoint did not take the connection"
end

local function names(txn)
  local to, record = txn:get_var("txn.to") or "", txn:get_var("txn.record")
  local hop = record and record:match("^limpet%-[^;]*;[^;]*;[^;]*;[^;]*:(s%d+);")
  local slot = hop or (record or to):match("^(s%d+);")
  local server = txn:get_var("txn.server") or not hop and txn.f:srv_name() or nil
  local route, rule = (label(to:match("r%w+$")) or ";"):match("^(.-);(.*)$")
  local session, why = became(txn, slot, server)
  return {
    route = route, rule = rule, backend = label(slot) or "", session = session, why = why,
    endpoint = slot and server and (label(slot .. "/" .. server) or server) or "",
  }
end

-- log gives one field of a request; all are made when the first is asked for.
core.register_fetches("log", function(txn, field)
  local private = shared.private(txn)
  private.names = private.names or names(txn)
  return private.names[field]
end)
