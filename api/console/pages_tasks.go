package console

// taskPages are those of tasks.
func taskPages() []page { return []page{tasksPage(), taskPage()} }
