;; Drives Emacs' eglot against the server: emacs -Q --batch -l eglot.el
;; Environment: GG_PYTHON (interpreter that has gradguard). Exits with 1 when a check failed.
(let ((default-directory "/usr/share/emacs/site-lisp/elpa/"))
  (when (file-directory-p default-directory) (normal-top-level-add-subdirs-to-load-path)))
(require 'eglot)
(require 'flymake)

(defvar gg-failed 0)
(defun gg-check (name ok &optional seen)
  (unless ok (setq gg-failed (1+ gg-failed)))
  (princ (format "%s  %s%s\n" (if ok "ok   " "FAIL ") name (if seen (format "  [%s]" seen) ""))))
(defun gg-wait (test)
  (let ((tries 0) value)
    (while (and (not (setq value (funcall test))) (< tries 1800))
      (accept-process-output nil 0.05)
      (setq tries (1+ tries)))
    value))

(let* ((folder (make-temp-file "gradguard" t))
       (file (expand-file-name "train.py" folder)))
  (with-temp-file file
    (set-buffer-file-coding-system 'utf-8-unix)
    (insert "import torch\n\nw = torch.randn(3, requires_grad=True)\ns = \"😋é\"; a = w.exp()\ns = \"😋é\"; a.mul_(2)\na.sum().backward()\n"))
  (setq eglot-server-programs `((python-mode . (,(getenv "GG_PYTHON") "-m" "gradguard" "server")))
        eglot-sync-connect t
        eglot-autoshutdown t
        eglot-confirm-server-initiated-edits nil)
  (find-file file)
  (python-mode)
  (setq eglot-connect-timeout 120)
  (apply #'eglot (eglot--guess-contact))
  (gg-check "the server starts" (eglot-current-server))
  (flymake-mode 1)
  (flymake-start)
  (gg-check "the finding arrives" (gg-wait (lambda () (flymake-diagnostics))))
  (let ((found (car (flymake-diagnostics))))
    (gg-check "it stands under the write"
              (and found (equal (buffer-substring (flymake-diagnostic-beg found) (flymake-diagnostic-end found)) "a.mul_(2)"))
              (and found (flymake-diagnostic-text found)))
    (when found
      (goto-char (flymake-diagnostic-beg found))
      (let* ((actions (jsonrpc-request (eglot-current-server) :textDocument/codeAction
                                       (list :textDocument (eglot--TextDocumentIdentifier)
                                             :range (list :start (eglot--pos-to-lsp-position) :end (eglot--pos-to-lsp-position))
                                             :context (list :diagnostics []))))
             (fix (seq-find (lambda (action) (string-match-p "out of place" (plist-get action :title))) actions)))
        (gg-check "the fix comes with its edit, as eglot does not resolve" (plist-get fix :edit) (plist-get fix :title))
        (when (plist-get fix :edit) (eglot--apply-workspace-edit (plist-get fix :edit)))
        (goto-char (point-min))
        (gg-check "it rewrites the line behind the emoji" (search-forward "s = \"😋é\"; a = a.mul(2)" nil t)))
      (gg-check "and the finding goes"
                (gg-wait (lambda () (eglot--signal-textDocument/didChange) (null (flymake-diagnostics)))))))
  (eglot-shutdown (eglot-current-server))
  (set-buffer-modified-p nil)
  (delete-directory folder t))
(kill-emacs (if (> gg-failed 0) 1 0))
