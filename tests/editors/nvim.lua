-- Drives Neovim's own LSP client against the server: nvim --headless -u NONE -i NONE -l nvim.lua
-- Environment: GG_PYTHON (interpreter that has gradguard), GG_PUSH=1 to refuse pull diagnostics.
-- Prints one line for each check and exits with 1 when one of them failed.
local api = vim.api
local failed = 0

local function check(name, ok, seen)
  if not ok then failed = failed + 1 end
  io.stdout:write((ok and 'ok    ' or 'FAIL  ') .. name .. (seen and ('  [' .. tostring(seen) .. ']') or '') .. '\n')
end

local TEXT = {
  'import torch',
  '',
  'w = torch.randn(3, requires_grad=True)',
  's = "😋é"; a = w.exp()',
  's = "😋é"; a.mul_(2)',
  'a.sum().backward()',
}

local function run()
  local dir = vim.fn.tempname()
  vim.fn.mkdir(dir, 'p')
  local file = dir .. '/train.py'
  vim.fn.writefile(TEXT, file)
  vim.cmd.edit(file)
  vim.bo.filetype = 'python'
  local buf = api.nvim_get_current_buf()

  vim.lsp.config('gradguard', {
    cmd = { vim.env.GG_PYTHON, '-m', 'gradguard', 'server' },
    filetypes = { 'python' },
    root_dir = dir,
    init_options = { diagnostics = vim.env.GG_PUSH == '1' and 'push' or nil },
  })
  vim.lsp.enable('gradguard')
  api.nvim_exec_autocmds('FileType', { buffer = buf, group = 'nvim.lsp.enable' })

  local client
  check('the server starts', vim.wait(90000, function()
    client = vim.lsp.get_clients({ name = 'gradguard', bufnr = buf })[1]
    return client ~= nil and client.initialized
  end, 20))
  check('diagnostics are ' .. (vim.env.GG_PUSH == '1' and 'pushed' or 'pulled'),
    (client.server_capabilities.diagnosticProvider == nil) == (vim.env.GG_PUSH == '1'))

  local function line(n) return api.nvim_buf_get_lines(buf, n, n + 1, false)[1] or '' end
  local function found()
    return vim.tbl_filter(function(d) return d.code == 'GG101' end, vim.diagnostic.get(buf))
  end

  check('the finding arrives', vim.wait(90000, function() return #found() == 1 end, 20), #vim.diagnostic.get(buf))
  local d = found()[1]
  -- Neovim counts bytes; the emoji takes four and the accent two.
  check('it stands under the write', d and line(d.lnum):sub(d.col + 1, d.end_col) == 'a.mul_(2)',
    d and ('%d:%d-%d'):format(d.lnum, d.col, d.end_col))
  check('it is an error', d and d.severity == vim.diagnostic.severity.ERROR)

  api.nvim_win_set_cursor(0, { 5, d.col + 1 })
  vim.lsp.buf.hover()
  local float
  vim.wait(60000, function()
    for _, w in ipairs(api.nvim_list_wins()) do
      if api.nvim_win_get_config(w).relative ~= '' then float = w end
    end
    return float ~= nil
  end, 20)
  local shown = float and table.concat(api.nvim_buf_get_lines(api.nvim_win_get_buf(float), 0, -1, false), ' ') or ''
  check('the hover explains it', shown:find('GG101', 1, true) and shown:find('exp', 1, true), shown:sub(1, 60))
  if float then api.nvim_win_close(float, true) end

  local function act(wanted)
    vim.lsp.buf.code_action({ apply = true, filter = function(a) return a.title:find(wanted) ~= nil end })
  end

  act('Ignore GG101 on this line$')
  check('ignoring it writes the comment behind the emoji', vim.wait(60000, function()
    return line(4) == TEXT[5] .. '  # gradguard: ignore[GG101]'
  end, 20), line(4))
  check('and silences it', vim.wait(60000, function() return #found() == 0 end, 20))
  api.nvim_buf_set_lines(buf, 4, 5, false, { TEXT[5] })
  check('without the comment it is back', vim.wait(60000, function() return #found() == 1 end, 20))

  act('out of place')
  check('the quick fix rewrites the line', vim.wait(60000, function() return line(4) == 's = "😋é"; a = a.mul(2)' end, 20), line(4))
  check('and the finding is gone', vim.wait(60000, function() return #found() == 0 end, 20))

  -- Half-typed code elsewhere takes nothing away and adds nothing.
  api.nvim_buf_set_lines(buf, 4, 5, false, { TEXT[5] })
  vim.wait(60000, function() return #found() == 1 end, 20)
  api.nvim_buf_set_lines(buf, 6, 6, false, { 'b = torch.exp(' })
  vim.wait(1000, function() return false end, 50)
  check('an open bracket below leaves it alone', #found() == 1, #found())

  client:stop()
  check('the server stops', vim.wait(60000, function() return client:is_stopped() end, 50))
  vim.fn.delete(dir, 'rf')
end

local ok, trouble = xpcall(run, debug.traceback)
if not ok then
  failed = failed + 1
  io.stdout:write('FAIL  ' .. tostring(trouble) .. '\n')
end
io.stdout:flush()
vim.cmd(failed > 0 and 'cquit 1' or 'qall!')
