;; Opens FILE, waits for diagnostics, applies the preferred quick fix of each until none is left,
;; and saves.  Says what it saw on standard output, one line each.

(package-initialize)
(require 'eglot)
(require 'flymake)
(setq eglot-send-changes-idle-time 0.05
      eglot-confirm-server-initiated-edits nil
      make-backup-files nil)
(add-to-list 'eglot-server-programs
             `(python-mode . (,(getenv "PYTHON") "-m" "npulens" "server")))

(defun say (form &rest values)
  (princ (concat (apply #'format form values) "\n")))

(defun fail (text)
  (say "failed: %s" text)
  (kill-emacs 1))

(defun wait-until (condition)
  (let ((tries 0))
    (while (and (not (funcall condition)) (< tries 300))
      (setq tries (1+ tries))
      (accept-process-output nil 0.1)
      (flymake-start))
    (funcall condition)))

(defun found () (flymake-diagnostics))

(find-file (getenv "FILE"))
(setq-local project-find-functions nil)
(python-mode)
(cl-letf (((symbol-function 'project-current)
           (lambda (&rest _) (cons 'transient (file-name-directory (getenv "FILE"))))))
  (apply #'eglot (eglot--guess-contact)))
(wait-until (lambda () (eglot-current-server)))
(unless (wait-until #'found) (fail "no diagnostics"))
(dolist (each (found))
  (say "seen: %s" (flymake-diagnostic-text each)))

(let ((rounds 0))
  (while (and (found) (< rounds 10))
    (setq rounds (1+ rounds))
    (let* ((before (length (found)))
           (here (flymake-diagnostic-beg (car (found))))
           (actions (jsonrpc-request
                     (eglot--current-server-or-lose)
                     :textDocument/codeAction
                     (list :textDocument (eglot--TextDocumentIdentifier)
                           :range (list :start (eglot--pos-to-lsp-position here)
                                        :end (eglot--pos-to-lsp-position here))
                           :context (list :diagnostics [] :only ["quickfix"]))))
           (chosen (cl-find-if (lambda (a) (eq (plist-get a :isPreferred) t))
                               (append actions nil))))
      (unless chosen (fail "no quick fix"))
      (say "applied: %s" (plist-get chosen :title))
      (unless (plist-get chosen :edit)
        (setq chosen (jsonrpc-request (eglot--current-server-or-lose)
                                      :codeAction/resolve chosen)))
      (eglot--apply-workspace-edit (plist-get chosen :edit))
      (eglot--signal-textDocument/didChange)
      (unless (wait-until (lambda () (< (length (found)) before)))
        (fail "a diagnostic stays")))))

(save-buffer)
(say "left: %d" (length (found)))
(let ((inhibit-message t)) (eglot-shutdown (eglot--current-server-or-lose)))
(kill-emacs 0)
