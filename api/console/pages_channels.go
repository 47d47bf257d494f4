package console

// channelPages are those of channels and models.
func channelPages() []page { return []page{channelsPage(), channelPage(), modelsPage()} }
