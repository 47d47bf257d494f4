// Package fake is what every fake vendor shares: one HTTP server, its keys, counts, records, rules that spoil answers,
// the control interface, and video jobs with their results. It knows no vendor's format.
//
// # To add a vendor
//
// Make a package next to this one, named fake and the vendor (fakeopenai), with
//
//	func Serve(server *fake.Server)
//
// and add it to the table in vendors.go of the parent folder. Serve adds an [Operation] for each path that the vendor has,
// all of them under a prefix that is the vendor's name ([Server.Handle]), and its result links ([Server.ServeLinks]). A
// [Vendor] says how calls are authenticated and refusals are worded. Every call takes the same way: its body is read, the
// operation's Parse reads it, it is counted and recorded, rules act, and Answer answers.
//
// A create's Parse sets x.Model, x.Prompt and x.Request and returns what the vendor would refuse; [Exchange.Decode] ignores
// members it does not know, [Exchange.DecodeKnown] refuses them. [ReadURL] and [ReadBase64] read media. Its Answer calls
//
//	j := s.Submit(x, jobs.Job{ID: …, Lookup: …, Seconds: …})
//
// which makes the job, counts it as paid, and returns nil after it refused the call. A read's Parse is [Server.ParseID] or
// [Server.ParseJob], and its Answer calls [Server.Poll]; lists come from [Server.Filtered], cancels go through [Server.Cancel].
// [jobs.Job.At] is the state at a moment, by the clock or as driven; the vendor gives it its own word through
// [jobs.Job.Named]. [Server.VideoLink] links to a result, [Server.ServeContent] sends one under the vendor's own address.
//
// Names of models may end in words that change what the fake does ([BehaviourOf]), so a vendor's rules that depend on the model go by how
// its name begins; names that begin with unknown ([UnknownModel]) are refused.
package fake
