def run_epoch(model, criterion, optimizer, loader, average):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        average.update(model)
