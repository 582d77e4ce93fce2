print("sfuctl")
