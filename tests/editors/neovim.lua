-- Opens FILE, waits for diagnostics, applies the preferred quick fix of each until none is left,
-- and saves. Says what it saw on standard output, one line each.

local function say(text)
  io.stdout:write(text .. "\n")
end

local function fail(text)
  say("failed: " .. text)
  vim.cmd("cquit 1")
end

local function main()
  vim.cmd("edit " .. vim.fn.fnameescape(vim.env.FILE))
  vim.bo.filetype = "python"
  local client = vim.lsp.start_client({
    name = "npulens",
    cmd = { vim.env.PYTHON, "-m", "npulens", "server" },
    root_dir = vim.fn.fnamemodify(vim.env.FILE, ":h"),
  })
  if client == nil then
    fail("the server does not start")
  end
  vim.lsp.buf_attach_client(0, client)
  local encoding

  local function found()
    return vim.diagnostic.get(0)
  end

  if not vim.wait(30000, function() return #found() > 0 end, 20) then
    fail("no diagnostics")
  end
  encoding = vim.lsp.get_client_by_id(client).offset_encoding
  for _, each in ipairs(found()) do
    say("seen: " .. each.user_data.lsp.code)
  end

  for _ = 1, 10 do
    local here = found()[1]
    if here == nil then
      break
    end
    local place = { line = here.lnum, character = here.col }
    local params = {
      textDocument = vim.lsp.util.make_text_document_params(),
      range = { start = place, ["end"] = place },
      context = { diagnostics = {}, only = { "quickfix" } },
    }
    local answers = vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 20000)
    local chosen
    for _, answer in pairs(answers or {}) do
      for _, action in ipairs(answer.result or {}) do
        if action.isPreferred and chosen == nil then
          chosen = action
        end
      end
    end
    if chosen == nil then
      fail("no quick fix")
    end
    if chosen.edit == nil then
      local resolved = vim.lsp.buf_request_sync(0, "codeAction/resolve", chosen, 20000)
      for _, answer in pairs(resolved or {}) do
        chosen = answer.result or chosen
      end
    end
    say("applied: " .. chosen.title)
    local before = #found()
    vim.lsp.util.apply_workspace_edit(chosen.edit, encoding)
    if not vim.wait(20000, function() return #found() < before end, 20) then
      fail("a diagnostic stays")
    end
  end

  vim.cmd("write")
  vim.wait(500, function() return false end, 50)
  say("left: " .. #found())
  vim.cmd("qall!")
end

-- An error would leave the editor waiting for keys.
xpcall(main, function(text)
  fail(debug.traceback(text))
end)
