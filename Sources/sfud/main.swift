print("sfud")
