package haproxy

import (
	"io"
	"os"
)

// maxLog bounds HAProxy's log file; one older file of that size is kept beside it.
const maxLog = 1 << 20

// openLog opens the file that HAProxy writes to, and tells how long it is already.
func openLog(path string) (*os.File, int64, error) {
	if err := trimLog(path); err != nil {
		return nil, 0, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// trimLog moves the content aside when it is too long. HAProxy keeps the file open for appending, so it is emptied and not
// replaced.
func trimLog(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= maxLog {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	text := logSince(path, max(0, info.Size()-maxLog))
	if err := os.WriteFile(path+".1", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Truncate(path, 0)
}

// logSince reads what was written after an offset, at most maxLog.
func logSince(path string, offset int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(file, maxLog))
	if err != nil {
		return ""
	}
	return string(text)
}
