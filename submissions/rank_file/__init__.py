"""The rank file itself: model, columns, ids, depth, findings. The ground floor of both wings."""
