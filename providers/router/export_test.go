package router

// Compared reports how often a model was looked for at a channel when the channels were loaded.
func (r *Router) Compared() int { return r.table.Load().compared }
