package controller

// mailbox holds the newest value that was put and not taken.
type mailbox[T any] struct{ mail chan T }

func newMailbox[T any]() mailbox[T] { return mailbox[T]{make(chan T, 1)} }

// put never blocks: what was there and nobody took is dropped.
func (m mailbox[T]) put(value T) {
	for {
		select {
		case m.mail <- value:
			return
		default:
		}
		select {
		case <-m.mail:
		default:
		}
	}
}
