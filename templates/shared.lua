-- What the other files share.
--
-- Everything is read from map files, which the runtime API changes. Names that begin with g or f are hashes of what they
-- stand for, so what was parsed once stays right and is kept, up to a bound.
--
-- What clients send is taken apart in time that grows with its length and no faster: no pattern that sees it may have two
-- repetitions that can share the same characters. Nothing interrupts a pattern, and one that takes a second ends HAProxy.

local MAX_KEPT = 16 * 1024 * 1024 -- bytes of text whose parsed form is kept, per thread and kind

local shared = {}

-- kept returns a function that parses a name once and remembers it, and forgets everything when that was too much. parse
-- returns what it made and how many bytes of text that came from.
function shared.kept(parse)
  local known, bytes = {}, 0
  return function(name)
    local value = known[name]
    if value == nil then
      local size
      value, size = parse(name)
      if value ~= nil then
        if bytes + size > MAX_KEPT then known, bytes = {}, 0 end
        known[name], bytes = value, bytes + size + #name
      end
    end
    return value
  end
end

function shared.split_fields(text, separator)
  local fields = {}
  for field in (text .. separator):gmatch("(.-)%" .. separator) do fields[#fields + 1] = field end
  return fields
end

-- A header that is sent several times counts as one with the values joined (RFC 9110, 5.3).
function shared.header_value(txn, name)
  local count = txn.f:req_fhdr_cnt(name) or 0
  if count == 0 then return nil end
  if count == 1 then return txn.f:req_fhdr(name) end
  local values = {}
  for i = 1, count do values[i] = txn.sf:req_fhdr(name, i) end
  return table.concat(values, ",")
end

-- private is what is remembered of one request.
function shared.private(txn)
  local private = txn:get_priv()
  if not private then
    private = {}
    txn:set_priv(private)
  end
  return private
end

return shared
